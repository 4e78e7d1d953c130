/* Who takes what the node sends on a link. */
#include "nodes/routes.h"

#include "unit.h"

struct taker {
	struct route route;
	int sent, hung_up;
};

static void take(void *arg, const struct msg *msg)
{
	struct taker *taker = arg;
	ck_assert_int_eq(msg->type, MSG_PONG);
	taker->sent++;
}

static void hang_up(void *arg)
{
	struct taker *taker = arg;
	taker->hung_up++;
}

static struct taker *open_one(struct routes *routes, struct taker *taker)
{
	*taker = (struct taker){ .route = { take, hang_up, taker } };
	routes_open(routes, &taker->route);
	return taker;
}

static bool act(struct routes *routes, enum node_action_type type, uint64_t link)
{
	return routes_act(routes, &(struct node_action){ .type = type,
							 .link = link,
							 .msg = { .type = MSG_PONG } });
}

TEST(each_link_has_an_id_of_its_own_and_none_is_used_again)
{
	struct routes routes = ROUTES_INIT;
	struct taker a, b, c;
	open_one(&routes, &a);
	routes_close(&routes, &open_one(&routes, &b)->route);
	open_one(&routes, &c);
	ck_assert_uint_ne(a.route.id, 0);
	ck_assert_uint_ne(c.route.id, b.route.id);
	ck_assert_uint_ne(c.route.id, a.route.id);
	routes_done(&routes);
}

TEST(a_message_reaches_the_taker_of_its_link_alone)
{
	struct routes routes = ROUTES_INIT;
	struct taker a, b;
	open_one(&routes, &a);
	open_one(&routes, &b);
	ck_assert(act(&routes, NODE_DO_SEND, b.route.id));
	ck_assert_int_eq(a.sent, 0);
	ck_assert_int_eq(b.sent, 1);
	ck_assert(act(&routes, NODE_DO_SEND, 99)); /* that link has ended meanwhile */
	routes_close(&routes, &b.route);
	ck_assert(act(&routes, NODE_DO_SEND, b.route.id));
	ck_assert_int_eq(b.sent, 1);
	routes_done(&routes);
}

TEST(a_link_is_hung_up_once_and_takes_nothing_after_that)
{
	struct routes routes = ROUTES_INIT;
	struct taker a;
	open_one(&routes, &a);
	ck_assert(act(&routes, NODE_DO_HANG_UP, a.route.id));
	ck_assert(act(&routes, NODE_DO_HANG_UP, a.route.id));
	ck_assert(act(&routes, NODE_DO_SEND, a.route.id));
	ck_assert_int_eq(a.hung_up, 1);
	ck_assert_int_eq(a.sent, 0);
	routes_done(&routes);
}

static void take_work(void *arg, const void *data, size_t len)
{
	struct taker *taker = arg;
	ck_assert(len == 4 && memcmp(data, "work", len) == 0);
	taker->sent++;
}

TEST(bytes_of_a_batch_go_to_links_that_carry_them)
{
	struct routes routes = ROUTES_INIT;
	struct taker a, b;
	open_one(&routes, &a);
	open_one(&routes, &b)->route.send_work = take_work;
	routes_send_work(&routes, a.route.id, "work", 4);
	routes_send_work(&routes, b.route.id, "work", 4);
	ck_assert(a.sent == 0 && b.sent == 1);
	routes_hang_up(&routes, b.route.id);
	routes_send_work(&routes, b.route.id, "work", 4);
	ck_assert(b.hung_up == 1 && b.sent == 1);
	routes_done(&routes);
}

TEST(what_is_not_for_a_link_is_left_to_others)
{
	struct routes routes = ROUTES_INIT;
	ck_assert(!act(&routes, NODE_DO_HANG_UP, 0)); /* the connection under way */
	ck_assert(!act(&routes, NODE_DO_HANG_UP_ALL, 0));
	ck_assert(!act(&routes, NODE_DO_LISTEN, 0));
	routes_done(&routes);
}
