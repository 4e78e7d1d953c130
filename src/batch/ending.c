#include "batch/ending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define PIECE ((size_t)64 << 10)

static struct result_output *output_of(struct ending *ending, int stream)
{
	return stream == 0 ? &ending->result.out : &ending->result.err_out;
}

void ending_init_bare(struct ending *ending)
{
	*ending = (struct ending){ .result = RESULT_INIT, .fds = { -1, -1 } };
	list_init(&ending->link);
}

void ending_init_empty(struct ending *ending)
{
	ending_init_bare(ending);
	for (int i = 0; i < 2; i++)
		output_of(ending, i)->present = true;
}

void ending_init(struct ending *ending, int fds[2])
{
	ending_init_bare(ending);
	for (int i = 0; i < 2; i++) {
		struct stat info;
		ending->fds[i] = fd_take(&fds[i]);
		if (ending->fds[i] < 0 || fstat(ending->fds[i], &info) < 0)
			continue;
		output_of(ending, i)->present = true;
		ending->bytes[i] = output_of(ending, i)->bytes = (uint64_t)info.st_size;
	}
}

void ending_done(struct ending *ending)
{
	list_unlink(&ending->link);
	result_done(&ending->result);
	fd_close(&ending->fds[0]);
	fd_close(&ending->fds[1]);
	free(ending->tag);
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

static_assert(sizeof(((struct result *)NULL)->variant) > ORDER_VARIANT_MAX, "a variant fits");

static char *copy(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

void ending_set_order(struct result *result, const struct order *order, int slot, int width)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	order_append_id(order, &text);
	result->id = buf_take_str(&text);
	order_hash_text(order, result->hash);
	result->named = order->named;
	if (order->shell) {
		order_append_command(order, order->uses_slot ? 0 : slot, &text);
		result->shell = buf_take_str(&text);
	} else {
		strv_add_all(&result->argv, order->argv);
	}
	if (width > 1)
		result->width = width;
	if (!order->extra)
		return;
	strv_add_all(&result->args, strv_argv(&order->extra->args));
	const struct order_extra *extra = order->extra;
	strv_add_all(&result->arg_names, strv_argv(&extra->arg_names));
	strv_add_all(&result->env, strv_argv(&extra->env));
	strv_add_all(&result->labels, strv_argv(&extra->labels));
	result->cwd = copy(extra->cwd);
	result->stdin_path = copy(extra->stdin_path);
	result->group = copy(extra->group);
	result->source = copy(extra->source);
	if (extra->variant)
		strcpy(result->variant, extra->variant);
}
