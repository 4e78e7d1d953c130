/* A host checks itself while the job runs. This program is also its own `muster doctor`. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "loop.h"
#include "proto/checks/check_json.h"
#include "run/checks/job_checks.h"

static void print_result(void)
{
	AUTO(check_list_done) struct check_list results = CHECK_LIST_INIT;
	struct check_result result = { .state = CHECK_BAD };
	snprintf(result.name, sizeof(result.name), "memory");
	snprintf(result.text, sizeof(result.text), "it is full");
	check_list_add(&results, &result);
	AUTO(buf_done) struct buf text = BUF_INIT;
	check_json_write_all("here", &results, &text);
	printf("%s", buf_str(&text));
}

__attribute__((constructor)) static void be_doctor(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], "doctor") != 0)
		return;
	if (getenv("GARBAGE"))
		printf("{\"checks\": [");
	else
		print_result();
	exit(0);
}

struct host {
	struct event_base *base;
	struct run_config config;
	struct job_checks checks;
	struct check_digest digest;
	int checked; /* times */
	bool known;
};

static void on_event(void *arg, const struct agent_event *event)
{
	struct host *host = arg;
	ck_assert_int_eq(event->type, AGENT_CHECKED);
	host->checked++;
	host->known = event->digest;
	if (event->digest)
		host->digest = *event->digest;
}

static void drop_line(void *arg UNUSED, enum log_level level UNUSED, const char *line UNUSED,
		      size_t len UNUSED)
{
}

static void open_host(struct host *host)
{
	struct node_info node = { .pair_port = 0 };
	*host = (struct host){ .base = event_base_new(),
			       .config.entry = { .path = "true", .title = "true" } };
	host->checks = (struct job_checks){
		.base = host->base, .config = &host->config, .on_event = on_event, .arg = host
	};
	log_set_sink(drop_line, NULL);
	job_checks_open(&host->checks, &node);
	ck_assert_uint_eq(node.pair_port, 0); /* nobody wants wires measured */
}

static void close_host(struct host *host)
{
	job_checks_done(&host->checks);
	log_set_sink(NULL, NULL);
	event_base_free(host->base);
}

TEST(what_the_checker_finds_reaches_the_node_once)
{
	struct host host;
	open_host(&host);
	job_checks_begin(&host.checks);
	job_checks_begin(&host.checks); /* one is under way */
	WAIT_FOR(&host, host.checked);
	ck_assert(host.known);
	ck_assert(host.digest.bad);
	ck_assert_int_eq(event_base_loop(host.base, 0), 1); /* no event is left in it */
	ck_assert_int_eq(host.checked, 1);
	job_checks_begin(&host.checks);
	WAIT_FOR(&host, host.checked == 2);
	close_host(&host);
}

TEST(a_checker_that_prints_garbage_says_nothing_about_the_host)
{
	struct host host;
	setenv("GARBAGE", "1", 1);
	open_host(&host);
	job_checks_begin(&host.checks);
	WAIT_FOR(&host, host.checked);
	ck_assert(!host.known);
	close_host(&host);
}

TEST(a_job_that_ends_meanwhile_ends_the_checker)
{
	struct host host;
	open_host(&host);
	job_checks_begin(&host.checks);
	pid_t checker = host.checks.child.pid;
	ck_assert_int_gt(checker, 0);
	close_host(&host);
	ck_assert_int_eq(kill(checker, 0), -1);
}
