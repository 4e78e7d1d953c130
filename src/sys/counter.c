#include "sys/counter.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "proto/valgrind_out.h"
#include "sys/perf_count.h"

#define OUT_MAX ((size_t)256 << 20) /* bytes of one valgrind file */

static const struct {
	const char *name;
	const char *options[3];
	const char *out_option;
} sources[] = {
	[COUNTER_NONE] = { .name = "none" },
	[COUNTER_PERF] = { .name = "perf" },
	[COUNTER_CACHEGRIND] = { "cachegrind",
				 { "--tool=cachegrind", "--cache-sim=no" },
				 "--cachegrind-out-file" },
	[COUNTER_CALLGRIND] = { "callgrind", { "--tool=callgrind" }, "--callgrind-out-file" },
};
static_assert(ARRAY_LEN(sources) == COUNTER_SOURCE_COUNT, "every source needs a row");

const char *counter_source_name(enum counter_source source)
{
	return sources[source].name;
}

/* ---- choosing ---- */

char *counter_valgrind_path(void)
{
	char *file = path_search("valgrind", NULL);
	if (!file)
		return NULL;
	char *program = mem_printf("%s.bin", file);
	bool wrapped = path_is_program(program);
	free(wrapped ? file : program);
	return wrapped ? program : file;
}

int counter_check(enum counter_source source, struct err *err)
{
	if (source == COUNTER_NONE)
		return 0;
	if (counter_is_valgrind(source)) {
		AUTO_FREE char *path = counter_valgrind_path();
		return path ? 0 : err_set(err, ENOENT, "valgrind is not installed");
	}
	AUTO(fd_close) int fd = perf_count_open(getpid(), PERF_INSTRUCTIONS, err);
	return fd < 0 ? fd : 0;
}

int counter_choose(enum counter_source *ret_source, struct err *err)
{
	struct err no_perf = ERR_INIT, no_valgrind = ERR_INIT;
	if (counter_check(COUNTER_PERF, &no_perf) == 0)
		*ret_source = COUNTER_PERF;
	else if (counter_check(COUNTER_CACHEGRIND, &no_valgrind) == 0)
		*ret_source = COUNTER_CACHEGRIND;
	else
		return err_set(err, ENOENT, "%s, and %s", no_perf.msg, no_valgrind.msg);
	return 0;
}

/* ---- valgrind ---- */

void counter_wrap(enum counter_source source, const char *prefix, char *const *argv,
		  struct strv *ret_argv)
{
	strv_add(ret_argv, "valgrind");
	for (size_t i = 0; i < ARRAY_LEN(sources[source].options) && sources[source].options[i];
	     i++)
		strv_add(ret_argv, sources[source].options[i]);
	strv_add(ret_argv, "--quiet");
	strv_add(ret_argv, "--log-file=/dev/null"); /* its messages are not the order's output */
	strv_add(ret_argv, "--trace-children=yes");
	strv_take(ret_argv, mem_printf("%s=%s.%%p", sources[source].out_option, prefix));
	strv_add(ret_argv, "--");
	strv_add_all(ret_argv, argv);
}

static int add_file(const char *path, uint64_t *count, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	int r = file_read(path, OUT_MAX, &text, err);
	uint64_t one = 0;
	if (r >= 0)
		r = valgrind_out_instructions((const char *)buf_data(&text), buf_len(&text), &one,
					      err);
	unlink(path);
	*count += one;
	return r < 0 ? r : 0;
}

int counter_collect(const char *prefix, uint64_t *ret_count, struct err *err)
{
	const char *slash = strrchr(prefix, '/');
	const char *base = slash ? slash + 1 : prefix;
	AUTO_FREE char *folder =
		slash ? mem_strndup(prefix, (size_t)(slash - prefix)) : mem_strdup(".");
	DIR *dir = opendir(folder);
	if (!dir)
		return err_set(err, errno, "%s: %m", folder);
	uint64_t count = 0;
	int r = 0, files = 0;
	for (struct dirent *entry; (entry = readdir(dir));) {
		size_t len = strlen(base);
		if (strncmp(entry->d_name, base, len) != 0 || entry->d_name[len] != '.')
			continue;
		AUTO_FREE char *path = mem_printf("%s/%s", folder, entry->d_name);
		int one = add_file(path, &count, r < 0 ? NULL : err);
		r = r < 0 ? r : one;
		files++;
	}
	closedir(dir);
	if (r == 0 && files == 0)
		r = err_set(err, ENODATA, "valgrind wrote no counts");
	if (r == 0)
		*ret_count = count;
	return r;
}

/* ---- addresses ---- */

int counter_fix_addresses(struct err *err)
{
	int now = personality(0xffffffff);
	if (now < 0 || personality((unsigned long)now | ADDR_NO_RANDOMIZE) < 0)
		return err_set(err, errno, "cannot switch address randomisation off: %m");
	return 0;
}
