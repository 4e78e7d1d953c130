#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/results.h"

static int read_text(const char *line, struct result *result, struct err *err)
{
	return result_read(line, strlen(line), result, err);
}

TEST(a_result_survives_writing_and_reading)
{
	AUTO(result_done) struct result in = RESULT_INIT, back = RESULT_INIT;
	AUTO(buf_done) struct buf line = BUF_INIT;
	in.id = mem_strdup("a \"b\"\t\xff\xc3\xa9");
	strcpy(in.hash, "00112233445566778899aabbccddeeff");
	strv_add(&in.argv, "./x");
	strv_add(&in.argv, "");
	strv_add(&in.env, "A=1=2");
	strv_add(&in.env, "B");
	in.attempt = 2;
	in.run = 4;
	in.block = 0;
	strcpy(in.variant, "B");
	in.reason = REASON_OOM;
	in.status = (struct exit_status){ .kind = EXIT_SIGNAL, .value = SIGKILL };
	result_set(&in, RESULT_WALL_NS, 5000000000);
	result_set(&in, RESULT_INSTRUCTIONS, 7);
	result_miss(&in, "maxrss_kb", "no rusage");
	in.out = (struct result_output){ .present = true, .bytes = 1ull << 30 };
	result_write(&in, &line);

	struct err err = ERR_INIT;
	ck_assert_msg(read_text(buf_str(&line), &back, &err) == 1, "%s in %s", err.msg,
		      buf_str(&line));
	ck_assert_str_eq(back.id, in.id);
	ck_assert_str_eq(back.hash, in.hash);
	ck_assert_uint_eq(back.argv.count, 2);
	ck_assert_str_eq(back.argv.items[1], "");
	ck_assert_str_eq(back.env.items[0], "A=1=2");
	ck_assert_str_eq(back.env.items[1], "B");
	ck_assert_int_eq(back.attempt, 2);
	ck_assert_int_eq(back.run, 4);
	ck_assert_int_eq(back.block, 0);
	ck_assert_str_eq(back.variant, "B");
	ck_assert_int_eq(back.reason, REASON_OOM);
	ck_assert_int_eq(back.status.value, SIGKILL);
	ck_assert_int_eq(back.value[RESULT_WALL_NS], 5000000000);
	ck_assert(back.has[RESULT_INSTRUCTIONS]);
	ck_assert(!back.has[RESULT_MAXRSS_KB]);
	ck_assert_str_eq(env_get(&back.missing, "maxrss_kb"), "no rusage");
	ck_assert_uint_eq(back.out.bytes, 1ull << 30);
	ck_assert(!back.err_out.present);
}

TEST(a_value_that_is_missing_is_absent_and_not_zero)
{
	AUTO(result_done) struct result in = RESULT_INIT;
	AUTO(buf_done) struct buf line = BUF_INIT;
	in.id = mem_strdup("x");
	result_miss(&in, "wall_ns", "never started");
	result_write(&in, &line);
	ck_assert_ptr_null(strstr(buf_str(&line), "\"wall_ns\":0"));
	ck_assert_ptr_nonnull(
		strstr(buf_str(&line), "\"missing\":{\"wall_ns\":\"never started\"}"));
}

TEST(broken_result_lines_are_refused)
{
	static const char *const lines[] = {
		"",
		"x",
		"[]",
		"{",
		"{}",
		"{\"id\":1,\"reason\":\"ok\"}",
		"{\"id\":\"a\"}",
		"{\"id\":\"a\",\"reason\":\"no\"}",
		"{\"id\":\"a\",\"reason\":\"ok\"} x",
		"{\"id\":\"a\\u0000\",\"reason\":\"ok\"}",
		"{\"id\":\"a\",\"reason\":\"ok\",}",
		"{\"id\":\"a\",\"reason\":\"ok\",\"exit\":-1}",
		"{\"id\":\"a\",\"reason\":\"ok\",\"wall_ns\":01}",
		"{\"id\":\"a\",\"reason\":\"ok\",\"wall_ns\":1.5}",
		"{\"id\":\"a\",\"reason\":\"ok\",\"x\":\"\\ud800\"}",
	};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		AUTO(result_done) struct result result = RESULT_INIT;
		ck_assert_msg(read_text(lines[i], &result, NULL) == -EINVAL, "accepted: %s",
			      lines[i]);
	}
}

TEST(headers_and_unknown_keys_are_passed_over)
{
	AUTO(result_done) struct result result = RESULT_INIT;
	ck_assert_int_eq(read_text("{\"muster\":\"batch\",\"v\":1,\"host\":{\"a\":[1,{}]}}",
				   &result, NULL),
			 0);
	result_done(&result);
	ck_assert_int_eq(read_text("{\"new\":[{\"a\":null},-1.5e3],\"id\":\"a\",\"reason\":\"ok\"}",
				   &result, NULL),
			 1);
}

TEST(nesting_is_bounded)
{
	char deep[1000];
	memset(deep, '[', sizeof(deep));
	AUTO(result_done) struct result result = RESULT_INIT;
	memcpy(deep, "{\"x\":", 5);
	ck_assert_int_eq(result_read(deep, sizeof(deep), &result, NULL), -EINVAL);
}

static int count_result(void *arg, struct result *result UNUSED, struct err *err UNUSED)
{
	++*(int *)arg;
	return 0;
}

static int read_file_with(const char *content, int *ret_count, uint64_t *ret_end, struct err *err)
{
	char path[] = "/tmp/muster-result-XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	close(fd);
	*ret_count = 0;
	int r = results_read(path, count_result, ret_count, NULL, ret_end, err);
	unlink(path);
	return r;
}

TEST(a_torn_last_line_is_ignored_and_a_broken_one_costs_only_itself)
{
	struct err err = ERR_INIT;
	uint64_t end;
	int count;
	ck_assert_int_eq(read_file_with("{\"muster\":\"batch\"}\n{\"id\":\"a\",\"reason\":\"ok\"}"
					"\n{\"id\":\"b\",\"rea",
					&count, &end, &err),
			 0);
	ck_assert_int_eq(count, 1);
	ck_assert_uint_eq(end, 44);
	ck_assert_int_eq(
		read_file_with(
			"{\"muster\":\"batch\"}\n{\"id\":\"a\"\n{\"id\":\"a\",\"reason\":\"ok\"}\n",
			&count, &end, &err),
		0);
	ck_assert_int_eq(count, 1);
	ck_assert_int_eq(read_file_with("notes\n{\"id\":\"a\",\"reason\":\"ok\"}\n", &count, &end,
					&err),
			 -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, ":1: "));
}

/* The keys that the list of RESULTS in the manual page names, each followed by a blank. */
static void add_manual_keys(struct buf *keys)
{
	AUTO(buf_done) struct buf page = BUF_INIT;
	struct err err = ERR_INIT;
	ck_assert_msg(file_read("man/muster-batch.5", 1 << 20, &page, &err) == 0, "%s", err.msg);
	char *rest = strstr(buf_str(&page), "\n.Sh RESULTS\n");
	ck_assert_ptr_nonnull(rest);
	int depth = 0;
	for (char *line; (line = strsep(&rest, "\n")) && !str_starts(line, ".Sh JOB LOG");) {
		depth += str_starts(line, ".Bl") - str_starts(line, ".El");
		if (depth != 1 || !str_starts(line, ".It Li "))
			continue;
		char *words = line + strlen(".It Li ");
		for (char *word; (word = strsep(&words, " "));)
			if (!str_eq(word, ","))
				buf_printf(keys, "%s ", word);
	}
}

TEST(the_manual_page_describes_every_key_and_no_other)
{
	AUTO(buf_done) struct buf manual = BUF_INIT;
	size_t count = 0, described = 0;
	buf_append_char(&manual, ' ');
	add_manual_keys(&manual);
	for (const char *p = buf_str(&manual) + 1; (p = strchr(p, ' ')); p++)
		described++;
	AUTO(buf_done) struct buf source = BUF_INIT;
	struct err err = ERR_INIT;
	ck_assert_msg(file_read("src/proto/result.c", 1 << 20, &source, &err) == 0, "%s", err.msg);
	char *rest = strstr(buf_str(&source), " result_fields[] = {\n");
	ck_assert_ptr_nonnull(rest);
	for (char *line; (line = strsep(&rest, "\n")) && !str_eq(line, "};");) {
		char key[64];
		if (sscanf(line, "\t{ \"%63[^\"]\"", key) != 1)
			continue;
		AUTO_FREE char *word = mem_printf(" %s ", key);
		ck_assert_msg(strstr(buf_str(&manual), word), "%s is not in the manual", key);
		count++;
	}
	ck_assert_uint_eq(described, count);
}
