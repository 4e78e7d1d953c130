/* Lines that can be checked: a worker writes them, a reader of all workers' output proves that not
 * a byte was lost or torn and that each worker's order was kept.
 *
 * line_flood write MEGABYTES            as a worker (RANK), to stdout, in pieces that tear lines
 * line_flood lines MEGABYTES            the same, line by line: a terminal shows a line that is
 * late in parts line_flood check WORKERS MEGABYTES    the output of all, with or without prefix, on
 * stdin
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_LEN 400
#define PIECE ((size_t)65521) /* odd, so that lines are torn on their way into the pipe */

/* "RANK SEQ FILLER…\n", of a length that varies with seq. */
static int make_line(char *line, int rank, long seq)
{
	int len = sprintf(line, "%d %ld ", rank, seq);
	int filler = (int)((seq * 7919 + rank * 31) % 300);
	for (int i = 0; i < filler; i++)
		line[len++] = (char)('a' + (seq + i) % 26);
	line[len++] = '\n';
	return len;
}

/* In pieces of so many bytes; 0: each line in one piece, which a pipe keeps whole. */
static int write_all(long limit, size_t piece)
{
	static char chunk[PIECE + LINE_MAX_LEN];
	int rank = atoi(getenv("RANK"));
	size_t used = 0;
	long total = 0;
	for (long seq = 0; total < limit; seq++) {
		int len = make_line(chunk + used, rank, seq);
		used += (size_t)len;
		total += len;
		size_t part = piece && total < limit ? piece : used;
		if (used < part)
			continue;
		for (size_t done = 0; done < part;) {
			ssize_t n = write(1, chunk + done, part - done);
			if (n < 0)
				return 1;
			done += (size_t)n;
		}
		memmove(chunk, chunk + part, used - part);
		used -= part;
	}
	return 0;
}

static int check_all(int workers, long limit)
{
	long next[1024] = { 0 }, total[1024] = { 0 };
	char line[LINE_MAX_LEN + 256], expected[LINE_MAX_LEN];
	while (fgets(line, sizeof(line), stdin)) {
		char *text = strchr(line, ':');
		text = text ? text + 1 : line;
		char *end = strpbrk(text, "\r\n");
		int rank = -1;
		if (sscanf(text, "%d", &rank) != 1 || rank < 0 || rank >= workers || !end) {
			fprintf(stderr, "torn: %s", line);
			return 1;
		}
		strcpy(end, "\n"); /* a terminal has made "\r\n" of it */
		int len = make_line(expected, rank, next[rank]++);
		if ((size_t)len != strlen(text) || memcmp(text, expected, (size_t)len) != 0) {
			fprintf(stderr, "rank %d, line %ld: not as written: %s", rank,
				next[rank] - 1, line);
			return 1;
		}
		total[rank] += len;
	}
	for (int i = 0; i < workers; i++)
		if (total[i] < limit) {
			fprintf(stderr, "rank %d: %ld of %ld bytes\n", i, total[i], limit);
			return 1;
		}
	puts("complete");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "write") == 0)
		return write_all((long)(atof(argv[2]) * 1e6), PIECE);
	if (argc == 3 && strcmp(argv[1], "lines") == 0)
		return write_all((long)(atof(argv[2]) * 1e6), 0);
	if (argc == 4 && strcmp(argv[1], "check") == 0)
		return check_all(atoi(argv[2]), (long)(atof(argv[3]) * 1e6));
	return 2;
}
