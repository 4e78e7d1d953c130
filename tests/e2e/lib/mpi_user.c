/* An MPI program of the tests. Its words are done one after the other between MPI_Init and
 * MPI_Finalize, by the rank in front of a colon only:
 *
 *     all             every collective and communicators, compared with what they must give
 *     rma             one-sided access, which Debian's MPICH 4.0.2 gets wrong under any launcher
 *     abort:7  exit:5 exit:0  hang  (with a rank: 1,abort:7)
 *     hosts           how many ranks share memory with this one
 *     names           publish, look up and withdraw a name
 *     spawn           ask for more processes, and print whether that is an error
 *     checkpoint=DIR  100 steps with a checkpoint each; what is already done is not done again
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void must(int holds, const char *what)
{
	if (holds)
		return;
	printf("rank %d: %s is wrong\n", rank, what);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 99);
}

static void collectives(void)
{
	int *all = calloc(size, sizeof(int)), *other = calloc(size, sizeof(int));
	int sum = size * (size - 1) / 2, value = rank, got = -1;
	MPI_Allreduce(&value, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	must(got == sum, "allreduce");
	got = -1;
	MPI_Reduce(&value, &got, 1, MPI_INT, MPI_MAX, size - 1, MPI_COMM_WORLD);
	must(rank != size - 1 || got == size - 1, "reduce");
	got = rank == 0 ? 42 : 0;
	MPI_Bcast(&got, 1, MPI_INT, 0, MPI_COMM_WORLD);
	must(got == 42, "bcast");
	MPI_Allgather(&value, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		must(all[i] == i, "allgather");
	for (int i = 0; i < size; i++)
		other[i] = rank * size + i;
	MPI_Alltoall(other, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		must(all[i] == i * size + rank, "alltoall");
	MPI_Gather(&value, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; rank == 0 && i < size; i++)
		must(all[i] == i, "gather");
	MPI_Scatter(all, 1, MPI_INT, &got, 1, MPI_INT, 0, MPI_COMM_WORLD);
	must(got == rank, "scatter");
	MPI_Scan(&value, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	must(got == rank * (rank + 1) / 2, "scan");
	MPI_Barrier(MPI_COMM_WORLD);
	free(all);
	free(other);
}

static void one_sided(void)
{
	int *mine, next = (rank + 1) % size;
	MPI_Win window;
	MPI_Win_allocate(sizeof(*mine), sizeof(*mine), MPI_INFO_NULL, MPI_COMM_WORLD, &mine,
			 &window);
	*mine = rank;
	int got = -1;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window);
	MPI_Get(&got, 1, MPI_INT, next, 0, 1, MPI_INT, window);
	MPI_Win_unlock(next, window);
	must(got == next, "get");
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_free(&window);
}

static void communicators(void)
{
	MPI_Comm half;
	int count, sum = 0, one = 1;
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Comm_size(half, &count);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half);
	must(sum == count && count == (size + 1 - rank % 2) / 2, "split");
	MPI_Comm_free(&half);
}

static void hosts(void)
{
	MPI_Comm here;
	int count;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
	MPI_Comm_size(here, &count);
	printf("rank %d of %d shares memory with %d\n", rank, size, count);
	fflush(stdout);
}

static void names(void)
{
	char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
	if (rank == 0) { /* no real port: not every MPI has them */
		strcpy(port, "tag#0$description#here$");
		MPI_Publish_name("service", MPI_INFO_NULL, port);
	}
	MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_Lookup_name("service", MPI_INFO_NULL, found);
	must(strcmp(port, found) == 0, "lookup");
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		MPI_Unpublish_name("service", MPI_INFO_NULL, port);
}

static void spawn(void)
{
	MPI_Comm more;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	int r = MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &more,
			       MPI_ERRCODES_IGNORE);
	if (rank == 0)
		printf("spawn: %s\n", r == MPI_SUCCESS ? "success" : "an error");
}

static void checkpoint(const char *dir)
{
	char path[4096], fresh[4096];
	int step = 0, least;
	snprintf(path, sizeof(path), "%s/%d", dir, rank);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	FILE *file = fopen(path, "r");
	if (file) {
		must(fscanf(file, "%d", &step) == 1, "checkpoint");
		fclose(file);
	}
	MPI_Allreduce(&step, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	for (step = least; step < 100;) {
		int sum;
		MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		must(sum == step * size, "step");
		step++;
		file = fopen(fresh, "w");
		fprintf(file, "%d\n", step);
		fclose(file);
		rename(fresh, path);
		usleep(5000);
	}
	printf("rank %d done after step %d\n", rank, step);
	fflush(stdout);
}

static void act(const char *word)
{
	if (strcmp(word, "all") == 0) {
		collectives();
		communicators();
	} else if (strcmp(word, "rma") == 0) {
		one_sided();
	} else if (strcmp(word, "hosts") == 0) {
		hosts();
	} else if (strcmp(word, "names") == 0) {
		names();
	} else if (strcmp(word, "spawn") == 0) {
		spawn();
	} else if (strncmp(word, "checkpoint=", 11) == 0) {
		checkpoint(word + 11);
	} else if (strncmp(word, "abort:", 6) == 0) {
		MPI_Abort(MPI_COMM_WORLD, atoi(word + 6));
	} else if (strncmp(word, "exit:", 5) == 0) {
		_exit(atoi(word + 5));
	} else if (strcmp(word, "hang") == 0) {
		for (;;)
			pause();
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 1; i < argc; i++) {
		const char *comma = strchr(argv[i], ',');
		if (!comma)
			act(argv[i]);
		else if (atoi(argv[i]) == rank)
			act(comma + 1);
	}
	printf("rank %d of %d\n", rank, size);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
