#include "unit.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "net/discover_exec.h"

/* The calls of the callbacks, as text: "host:port@epoch " and "[note]". */
struct heard {
	struct event_base *base;
	struct buf words, notes;
	unsigned wanted; /* calls until the loop ends */
};

static void on_coordinator(void *arg, const struct addr_name *coordinator,
			   const struct discovery_line *line)
{
	struct heard *heard = arg;
	buf_printf(&heard->words, "%s:%u@%lu ", coordinator->host, coordinator->port, line->epoch);
	if (--heard->wanted == 0)
		event_base_loopbreak(heard->base);
}

static void on_again(void *arg, const struct discovery_line *line)
{
	struct heard *heard = arg;
	if (!line->until_ns)
		return;
	buf_printf(&heard->words, "until %lu ended %lu ", line->until_ns / NS_PER_MS,
		   line->past.epoch);
	if (--heard->wanted == 0)
		event_base_loopbreak(heard->base);
}

static void on_note(void *arg, const char *text)
{
	struct heard *heard = arg;
	buf_printf(&heard->notes, "[%s]", text);
	if (strstr(text, "enough"))
		event_base_loopbreak(heard->base);
}

static const struct discover_exec_handler handler = { on_coordinator, on_again, on_note };

static struct discover_exec *start_script(struct heard *heard, const char *script)
{
	static char *argv[] = { "sh", "-c", NULL, "sh", "run1", "me:1", NULL };
	struct err err = ERR_INIT;
	struct discover_exec *discovery;
	argv[2] = (char *)script;
	const struct discover_exec_config config = { .argv = argv, .envp = environ };
	heard->base = event_base_new();
	ck_assert_int_eq(discover_exec_new(heard->base, &config, &handler, heard, &discovery, &err),
			 0);
	return discovery;
}

static void run(struct heard *heard, const char *script, unsigned wanted)
{
	heard->wanted = wanted;
	struct discover_exec *discovery = start_script(heard, script);
	event_base_dispatch(heard->base);
	discover_exec_free(discovery);
	ck_assert_int_eq(waitpid(-1, NULL, 0), -1);
	ck_assert_int_eq(errno, ECHILD);
	event_base_free(heard->base);
}

static void heard_done(struct heard *heard)
{
	buf_done(&heard->words);
	buf_done(&heard->notes);
}

#define SAY(coordinator, epoch) "echo '{\"coordinator\":\"" coordinator "\",\"epoch\":" epoch "}'; "
#define STAY "read line"

TEST(the_coordinator_that_the_program_names_is_passed_on)
{
	AUTO(heard_done) struct heard heard = { .base = NULL };
	run(&heard, SAY("a:1", "3") SAY("[::1]:2", "4") STAY, 2);
	ck_assert_str_eq(buf_str(&heard.words), "a:1@3 ::1:2@4 ");
	ck_assert_uint_eq(buf_len(&heard.notes), 0);
}

TEST(it_gets_the_arguments)
{
	AUTO(heard_done) struct heard heard = { .base = NULL };
	run(&heard, "echo \"{\\\"coordinator\\\":\\\"$1:$#\\\",\\\"epoch\\\":1}\"; " STAY, 1);
	ck_assert_str_eq(buf_str(&heard.words), "run1:2@1 ");
}

TEST(epochs_never_go_back_and_repetitions_are_ignored)
{
	AUTO(heard_done) struct heard heard = { .base = NULL };
	run(&heard,
	    SAY("a:1", "3") SAY("a:1", "3") SAY("b:1", "3") SAY("b:1", "2") SAY("a:1", "4") STAY,
	    2);
	ck_assert_str_eq(buf_str(&heard.words), "a:1@3 a:1@4 ");
	ck_assert_str_eq(buf_str(&heard.notes), "['b:1' in epoch 3 is ignored: 'a:1' had epoch 3]"
						"['b:1' in epoch 2 is ignored: 'a:1' had epoch 3]");
}

TEST(bad_lines_are_reported_and_skipped)
{
	AUTO(heard_done) struct heard heard = { .base = NULL };
	run(&heard, "echo hello; " SAY("no-port", "1") SAY("a:99999", "1") SAY("a:1", "2") STAY, 1);
	ck_assert_str_eq(buf_str(&heard.words), "a:1@2 ");
	ck_assert_ptr_nonnull(strstr(buf_str(&heard.notes), "no JSON object"));
	ck_assert_ptr_nonnull(strstr(buf_str(&heard.notes), "'no-port' is not a host and a port"));
	ck_assert_ptr_nonnull(strstr(buf_str(&heard.notes), "'a:99999' is not a host and a port"));
}

TEST(an_endless_line_is_skipped)
{
	AUTO(heard_done) struct heard heard = { .base = NULL };
	run(&heard, "head -c 1000000 /dev/zero; echo; " SAY("a:1", "2") STAY, 1);
	ck_assert_str_eq(buf_str(&heard.words), "a:1@2 ");
	ck_assert_ptr_nonnull(strstr(buf_str(&heard.notes), "longer than"));
}

TEST(its_standard_error_is_passed_on_printable)
{
	AUTO(heard_done) struct heard heard = { .base = NULL };
	run(&heard, "printf 'trouble\\033[2J\\nenough\\n' >&2; " STAY, 0);
	ck_assert_str_eq(buf_str(&heard.notes), "[trouble?[2J][enough]");
}

TEST(a_chatterbox_is_held_back)
{
	AUTO(heard_done) struct heard heard = { .base = NULL };
	run(&heard, "for i in $(seq 1 500); do echo x; done >&2; " SAY("a:1", "2") STAY, 1);
	ck_assert_uint_le(buf_len(&heard.notes), 3 * (size_t)DISCOVER_EXEC_NOTES_PER_S * 20);
}

/* A script with a place of its own, which goes afterwards: %s in it is a directory that does not
 * exist. */
static void run_with_mark(struct heard *heard, const char *format, unsigned wanted,
			  bool *ret_marked)
{
	char dir[] = "/tmp/discovery-test-XXXXXX", mark[64], script[512];
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(mark, sizeof(mark), "%s/mark", dir);
	snprintf(script, sizeof(script), format, mark);
	run(heard, script, wanted);
	*ret_marked = rmdir(mark) == 0;
	rmdir(dir);
}

TEST(a_program_that_ends_is_started_again_and_its_last_line_counts)
{
	AUTO(heard_done) struct heard heard = { .base = NULL };
	bool marked;
	run_with_mark(&heard,
		      "mkdir %s && { " SAY("a:1", "1") "exit 3; }; " SAY("a:1", "1") SAY("b:1", "2")
			      STAY,
		      2, &marked);
	ck_assert(marked);
	ck_assert_str_eq(buf_str(&heard.words), "a:1@1 b:1@2 ");
	ck_assert_ptr_nonnull(
		strstr(buf_str(&heard.notes), "sh ended (exit code 3) and will be started again"));
}

TEST(a_program_that_closes_its_output_is_replaced)
{
	AUTO(heard_done) struct heard heard = { .base = NULL };
	struct discover_exec *discovery = start_script(&heard, "exec >&-; " STAY);
	while (!strstr(buf_str(&heard.notes), "SIGKILL"))
		event_base_loop(heard.base, EVLOOP_ONCE);
	discover_exec_free(discovery);
	event_base_free(heard.base);
}

TEST(a_program_that_is_not_there_is_an_error)
{
	static char *argv[] = { "/nonexistent/discovery", NULL };
	const struct discover_exec_config config = { .argv = argv, .envp = environ };
	struct err err = ERR_INIT;
	struct discover_exec *discovery;
	struct event_base *base = event_base_new();
	ck_assert_int_eq(discover_exec_new(base, &config, &handler, NULL, &discovery, &err),
			 -ENOENT);
	ck_assert_str_eq(err.msg, "cannot start /nonexistent/discovery: No such file or directory");
	event_base_free(base);
	ck_assert_int_eq(waitpid(-1, NULL, 0), -1);
}

/* It and what it has started. */
TEST(a_program_that_does_not_leave_is_killed)
{
	AUTO(heard_done) struct heard heard = { .base = NULL };
	run(&heard, "trap '' TERM; sleep 1000 & echo enough >&2; sleep 1000", 0);
	ck_assert_str_eq(buf_str(&heard.notes), "[enough]");
}

TEST(it_learns_of_our_end_by_the_end_of_its_input_and_has_time_to_leave)
{
	AUTO(heard_done) struct heard heard = { .base = NULL };
	bool marked;
	run_with_mark(&heard, "echo enough >&2; " STAY "; mkdir %s", 0, &marked);
	ck_assert(marked);
}

TEST(a_lease_that_is_renewed_is_reported_and_the_program_hears_how_the_job_ended)
{
	AUTO(heard_done) struct heard heard = { .base = NULL, .wanted = 2 };
	struct discover_exec *discovery = start_script(
		&heard,
		"echo '{\"coordinator\":\"a:1\",\"epoch\":3,\"until_ms\":5}'; "
		"echo '{\"coordinator\":\"a:1\",\"epoch\":3,\"until_ms\":7}'; read -r end; "
		"echo '{\"coordinator\":\"a:1\",\"epoch\":3,\"until_ms\":8,\"ended_epoch\":3,"
		"\"ended\":\"'$end'\"}'; " STAY);
	event_base_dispatch(heard.base);
	ck_assert_str_eq(buf_str(&heard.words), "a:1@3 until 7 ended 0 ");
	heard.wanted = 1;
	discover_exec_tell(discovery, "done");
	event_base_dispatch(heard.base);
	ck_assert_str_eq(buf_str(&heard.words), "a:1@3 until 7 ended 0 until 8 ended 3 ");
	discover_exec_free(discovery);
	event_base_free(heard.base);
}
