#include "unit.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>

#include "base/fd.h"
#include "net/store_link.h"
#include "net/store_server.h"

/* A real server and real links in one process, taking turns. */
struct fixture {
	struct event_base *base;
	struct store_server *server;
	struct addr addr;
	struct store_link *link[2];
	char log[256]; /* what was answered, in order */
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){ .base = event_base_new() };
	addr_from_ip("127.0.0.1", 0, &f->addr);
	int fd = addr_listen(&f->addr, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(addr_of_socket(fd, &f->addr, NULL), 0);
	struct store_server_config config = STORE_SERVER_CONFIG_DEFAULT;
	f->server = store_server_new(f->base, fd, &config);
	for (size_t i = 0; i < ARRAY_LEN(f->link); i++)
		ck_assert_int_eq(store_link_open(&f->addr, &f->link[i], NULL), 0);
}

static void fixture_done(struct fixture *f)
{
	for (size_t i = 0; i < ARRAY_LEN(f->link); i++)
		store_link_free(f->link[i]);
	store_server_free(f->server);
	event_base_free(f->base);
}

#define WITH_FIXTURE(f) \
	AUTO(fixture_done) struct fixture f; \
	fixture_init(&f)

static int turn(struct fixture *f)
{
	int r = 0;
	event_base_loop(f->base, EVLOOP_NONBLOCK);
	for (size_t i = 0; i < ARRAY_LEN(f->link); i++) {
		struct pollfd pfd = { .fd = store_link_fd(f->link[i]),
				      .events = store_link_events(f->link[i]) };
		if (poll(&pfd, 1, 0) > 0 && store_link_step(f->link[i], NULL) < 0)
			r = -1;
	}
	return r;
}

static void turn_until(struct fixture *f, const char *log)
{
	while (strlen(f->log) < strlen(log))
		turn(f);
	ck_assert_str_eq(f->log, log);
}

static struct fixture *current;

/* Appends the name given with the request, and how it went: "a" or "a!". */
static void note(void *arg, int result, const struct c10d_message *reply UNUSED)
{
	strcat(current->log, arg);
	if (result < 0)
		strcat(current->log, result == -ECANCELED ? "x" : "!");
}

static void ask(struct fixture *f, int who, enum c10d_query query, const char *key,
		const char *name)
{
	current = f;
	AUTO(buf_done) struct buf list = BUF_INIT;
	c10d_put_string(&list, bytes_str(key));
	store_link_ask(f->link[who],
		       &(struct c10d_message){ .query = query,
					       .string = { bytes_str(key), bytes_str("1") },
					       .number = 1,
					       .count = 1,
					       .list = bytes_of(buf_data(&list), buf_len(&list)) },
		       note, (void *)name);
}

TEST(replies_come_in_the_order_of_the_requests)
{
	WITH_FIXTURE(f);
	ask(&f, 0, C10D_SET, "k", "a");
	ask(&f, 0, C10D_GET, "k", "b");
	ask(&f, 0, C10D_ADD, "n", "c");
	ask(&f, 0, C10D_MULTI_GET, "k", "d");
	ask(&f, 0, C10D_LIST_KEYS, "", "e");
	ask(&f, 0, C10D_QUEUE_POP, "q", "f");
	ask(&f, 0, C10D_APPEND, "k", "g");
	ask(&f, 0, C10D_PING, "", "h");
	turn_until(&f, "abcdefgh");
	ck_assert(store_link_ready(f.link[0]));
}

TEST(what_stands_behind_a_wait_is_held_back_until_it_ends)
{
	WITH_FIXTURE(f);
	ask(&f, 0, C10D_WAIT, "k", "w");
	ask(&f, 0, C10D_GET, "k", "g");
	ask(&f, 1, C10D_PING, "", "p");
	turn_until(&f, "p");
	for (int i = 0; i < 10; i++)
		turn(&f);
	ck_assert_str_eq(f.log, "p");
	ask(&f, 1, C10D_SET, "k", "s");
	turn_until(&f, "pswg");
}

TEST(a_cancelled_wait_ends_and_the_link_goes_on)
{
	WITH_FIXTURE(f);
	ask(&f, 0, C10D_WAIT, "k", "w");
	store_link_cancel_wait(f.link[0]); /* before it was even sent: the handshake comes first */
	ask(&f, 0, C10D_PING, "", "p");
	turn_until(&f, "wxp");
	ask(&f, 0, C10D_WAIT, "k", "v");
	while (store_link_events(f.link[0]) & POLLOUT)
		turn(&f);
	store_link_cancel_wait(f.link[0]);
	turn_until(&f, "wxpvx");
	store_link_cancel_wait(f.link[0]); /* nothing to cancel */
	ask(&f, 0, C10D_PING, "", "q");
	turn_until(&f, "wxpvxq");
}

TEST(an_answer_that_crosses_the_cancel_counts)
{
	WITH_FIXTURE(f);
	ask(&f, 0, C10D_WAIT, "k", "w");
	ask(&f, 1, C10D_PING, "", "p");
	turn_until(&f, "p");
	for (int i = 0; i < 10; i++)
		turn(&f);
	/* The server answers the wait before it reads the cancel. */
	ask(&f, 1, C10D_SET, "k", "s");
	ask(&f, 1, C10D_PING, "", "q");
	while (!strchr(f.log, 'q')) {
		event_base_loop(f.base, EVLOOP_NONBLOCK);
		store_link_step(f.link[1], NULL);
	}
	store_link_cancel_wait(f.link[0]);
	ask(&f, 0, C10D_PING, "", "r");
	turn_until(&f, "psqwr");
}

TEST(a_lost_server_fails_everything_that_is_unanswered)
{
	WITH_FIXTURE(f);
	ask(&f, 0, C10D_WAIT, "k", "w");
	ask(&f, 0, C10D_PING, "", "p");
	ask(&f, 1, C10D_PING, "", "q");
	turn_until(&f, "q");
	store_server_free(f.server);
	f.server = NULL;
	while (turn(&f) == 0)
		;
	ck_assert(strstr(f.log, "w!p!"));
}
