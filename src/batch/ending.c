#include "batch/ending.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define PIECE ((size_t)64 << 10)

static struct result_output *output_of(struct ending *ending, int stream)
{
	return stream == 0 ? &ending->result.out : &ending->result.err_out;
}

void ending_init(struct ending *ending, int fds[2])
{
	*ending = (struct ending){ .result = RESULT_INIT, .fds = { -1, -1 } };
	list_init(&ending->link);
	for (int i = 0; i < 2; i++) {
		struct stat info;
		ending->fds[i] = fd_take(&fds[i]);
		if (ending->fds[i] < 0 || fstat(ending->fds[i], &info) < 0)
			continue;
		output_of(ending, i)->present = true;
		output_of(ending, i)->bytes = (uint64_t)info.st_size;
	}
}

void ending_done(struct ending *ending)
{
	list_unlink(&ending->link);
	result_done(&ending->result);
	fd_close(&ending->fds[0]);
	fd_close(&ending->fds[1]);
	free(ending->log_command);
}

static void finish_stream(struct ending *ending, bool whole)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	struct result_output *output = output_of(ending, ending->stream);
	crypto_hash_sha256_final(&ending->hash, hash);
	if (whole)
		sodium_bin2hex(output->sha256, sizeof(output->sha256), hash, sizeof(hash));
	else
		result_miss(&ending->result, ending->stream ? "stderr.sha256" : "stdout.sha256",
			    "the output could not be read back");
	ending->stream++;
	ending->offset = 0;
}

bool ending_hash(struct ending *ending, uint64_t budget)
{
	unsigned char piece[PIECE];
	while (ending->stream < 2) {
		struct result_output *output = output_of(ending, ending->stream);
		if (output->bytes == 0) {
			ending->stream++;
			continue;
		}
		if (ending->offset == 0)
			crypto_hash_sha256_init(&ending->hash);
		if (budget == 0)
			return false;
		size_t want = (size_t)MIN((uint64_t)PIECE, output->bytes - ending->offset);
		ssize_t n = pread(ending->fds[ending->stream], piece, want, (off_t)ending->offset);
		if (n <= 0) {
			finish_stream(ending, false);
			continue;
		}
		crypto_hash_sha256_update(&ending->hash, piece, (unsigned long long)n);
		ending->offset += (uint64_t)n;
		budget -= MIN(budget, (uint64_t)n);
		if (ending->offset == output->bytes)
			finish_stream(ending, true);
	}
	return true;
}
