#include "unit.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "net/wire.h"

static struct wire_spec spec_of(const char *token, uint16_t port)
{
	struct wire_spec spec = { .calls = true,
				  .serial = 7,
				  .secret = 12345,
				  .ms = 20,
				  .deadline_ns = ns_add(clock_now_ns(), 20 * NS_PER_S),
				  .addr_count = 1 };
	ck_assert_int_ge(sodium_init(), 0);
	ck_assert_int_eq(addr_from_ip("127.0.0.1", port, &spec.addrs[0]), 0);
	spec.has_token = token;
	if (token)
		ck_assert_int_eq(token_from_text(token, strlen(token), &spec.token, NULL), 0);
	return spec;
}

/* A process that serves one call and ends with 0 if that went well. */
static pid_t start_server(int listener, struct wire_spec spec)
{
	pid_t pid = fork();
	spec.calls = false;
	if (pid == 0)
		_exit(wire_serve(listener, &spec, NULL) < 0);
	return pid;
}

static int server_end(pid_t pid)
{
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static int listen_here(uint16_t *ret_port)
{
	struct err err = ERR_INIT;
	int listener = wire_listen(ret_port, &err);
	ck_assert_msg(listener >= 0, "%s", err.msg);
	return listener;
}

TEST(a_wire_is_measured_both_ways_with_a_token_and_without)
{
	static const char *const tokens[] = { "a secret", NULL };
	for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
		uint16_t port;
		AUTO(fd_close) int listener = listen_here(&port);
		struct wire_spec spec = spec_of(tokens[i], port);
		struct wire_found found;
		pid_t server = start_server(listener, spec);
		wire_call(&spec, &found);
		ck_assert_msg(found.known, "%s", found.why);
		ck_assert_uint_gt(found.bandwidth, 1000);
		ck_assert_uint_gt(found.latency_ns, 0);
		ck_assert_int_eq(server_end(server), 0);
	}
}

TEST(who_does_not_know_the_token_or_the_pair_is_sent_away_and_the_next_is_served)
{
	uint16_t port;
	AUTO(fd_close) int listener = listen_here(&port);
	struct wire_spec spec = spec_of("a secret", port);
	struct wire_found found;
	pid_t server = start_server(listener, spec);
	struct wire_spec others[] = { spec_of("another", port), spec_of(NULL, port), spec, spec };
	others[2].serial++;
	others[3].secret++;
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		wire_call(&others[i], &found);
		ck_assert_msg(!found.known, "%zu", i);
	}
	wire_call(&spec, &found);
	ck_assert_msg(found.known, "%s", found.why);
	ck_assert_int_eq(server_end(server), 0);
}

TEST(a_server_without_the_token_is_not_believed)
{
	uint16_t port;
	AUTO(fd_close) int listener = listen_here(&port);
	struct wire_found found;
	struct wire_spec spec = spec_of("a secret", port), other = spec_of("another", port);
	other.deadline_ns = ns_add(clock_now_ns(), NS_PER_S);
	pid_t server = start_server(listener, other);
	wire_call(&spec, &found);
	ck_assert(!found.known);
	ck_assert_int_ne(server_end(server), 0);
}

TEST(a_node_that_has_ended_says_nothing_about_the_wire)
{
	uint16_t port;
	int listener = listen_here(&port);
	fd_close(&listener);
	struct wire_spec spec = spec_of(NULL, port);
	struct wire_found found;
	wire_call(&spec, &found);
	ck_assert(!found.known);
	ck_assert_ptr_nonnull(strstr(found.why, "Connection refused"));
}

TEST(a_silent_other_side_is_given_up_at_the_deadline)
{
	uint16_t port;
	AUTO(fd_close) int listener = listen_here(&port);
	struct wire_spec spec = spec_of(NULL, port);
	struct wire_found found;
	spec.deadline_ns = ns_add(clock_now_ns(), 3 * NS_PER_S);
	wire_call(&spec, &found);
	ck_assert(!found.known);
	ck_assert_ptr_nonnull(strstr(found.why, "timed out"));
	spec.calls = false;
	ck_assert_int_eq(wire_serve(listener, &spec, NULL), -ETIMEDOUT);
}
