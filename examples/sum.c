/* Sums over ranks through the store, two ways: a program that starts itself as four workers.
 *
 *     cc -o sum sum.c $(pkg-config --cflags --libs muster) && ./sum
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <muster/muster.h>

#define PATIENCE 60.0 /* seconds */

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, muster_error());
	return 1;
}

/* Every rank adds its number to one key and waits for the others; then all read the same. */
static int sum_by_adding(struct muster_store *store, int64_t number, int world, int64_t *ret_sum)
{
	int64_t so_far;
	if (muster_store_add(store, "sum", number, PATIENCE, &so_far) < 0 ||
	    muster_store_barrier(store, "all added", world, PATIENCE) < 0)
		return -1;
	return muster_store_add(store, "sum", 0, PATIENCE, ret_sum);
}

/* Every rank puts its number under its own key; a rank that wants the sum waits for all of
 * them. */
static int sum_by_reading(struct muster_store *store, int rank, int64_t number, int world,
			  int64_t *ret_sum)
{
	char key[32], text[32];
	snprintf(key, sizeof(key), "number/%d", rank);
	snprintf(text, sizeof(text), "%" PRId64, number);
	if (muster_store_set(store, key, text, strlen(text), PATIENCE) < 0)
		return -1;
	*ret_sum = 0;
	for (int other = 0; other < world; other++) {
		void *value;
		size_t len;
		snprintf(key, sizeof(key), "number/%d", other);
		if (muster_store_get(store, key, PATIENCE, &value, &len) < 0)
			return -1;
		*ret_sum += strtoll(value, NULL, 10);
		free(value);
	}
	return 0;
}

static int work(int rank, int world)
{
	struct muster_store *store;
	int64_t added, read;
	if (muster_store_open(NULL, PATIENCE, &store) < 0)
		return fail("open");
	if (sum_by_adding(store, 10 + rank, world, &added) < 0 ||
	    sum_by_reading(store, rank, 10 + rank, world, &read) < 0)
		return fail("sum");
	printf("rank %d of %d: %" PRId64 " = %" PRId64 "\n", rank, world, added, read);
	muster_store_close(store);
	return added == read ? 0 : 1;
}

static void show(void *arg, const struct muster_event *event)
{
	(void)arg;
	if (event->rank >= 0)
		printf("%s rank %" PRId64 "\n", event->name, event->rank);
}

static int launch(const char *self)
{
	const char *const command[] = { self, NULL };
	const char *const options[] = { "--no-python", NULL };
	struct muster_launch_config config = MUSTER_LAUNCH_CONFIG_INIT;
	config.command = command;
	config.options = options;
	config.nproc_per_node = 4;
	struct muster_result *result;
	if (muster_launch(&config, show, NULL, &result) < 0)
		return fail("launch");
	for (size_t i = 0; i < result->count; i++)
		printf("rank %" PRId64 " ended with %d\n", result->workers[i].rank,
		       result->workers[i].exit_code);
	int code = result->exit_code;
	muster_result_free(result);
	return code;
}

int main(int argc, char **argv)
{
	const char *rank = getenv("RANK"), *world = getenv("WORLD_SIZE");
	if (argc != 1)
		return 2;
	return rank && world ? work(atoi(rank), atoi(world)) : launch(argv[0]);
}
