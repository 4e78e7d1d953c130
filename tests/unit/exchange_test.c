/* What ranks of several hosts put for each other: each host's PMI, and the coordinator between
 * them. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "core/pmi/pmi.h"

#include "coordinator_rig.h"

#define HOSTS 5
#define RANKS 3 /* on each */

/* One host. What it sends up waits here, so that the test decides who is heard next. */
struct host {
	struct pmi pmi;
	struct pmi_actions actions;
	size_t taken; /* of the actions */
};

static struct host hosts[HOSTS];
static uint32_t host_count, unions;
static uint64_t union_bytes;

static struct host *host_at(uint64_t link)
{
	return &hosts[link - 1];
}

/* What the coordinator sends goes to the hosts at once. */
static void hand_out(void)
{
	struct coordinator_actions sent = actions;
	actions = (struct coordinator_actions){ .items = NULL };
	for (size_t i = 0; i < sent.count; i++) {
		const struct msg *msg = &sent.items[i].msg;
		struct host *host = host_at(sent.items[i].link);
		if (sent.items[i].type != COORDINATOR_SEND)
			continue;
		if (msg->type == MSG_UNION) {
			unions++;
			union_bytes += msg->all.piece.len;
			pmi_union(&host->pmi, msg->all.seq, msg->all.size, msg->all.at,
				  msg->all.piece, &host->actions);
		} else if (msg->type == MSG_VALUE) {
			pmi_value(&host->pmi, msg->value.serial, msg->value.found, msg->value.value,
				  &host->actions);
		}
	}
	coordinator_actions_done(&actions);
	actions = sent;
}

static void send_up(uint64_t link, const struct pmi_action *action)
{
	struct msg msg = { .ballot = c.roster.heard.ballot };
	if (action->type == PMI_DO_WANT) {
		msg.type = MSG_WANT;
		msg.want = action->want;
		receive(link, &msg);
		hand_out();
		return;
	}
	struct bytes rest = action->pairs;
	do {
		size_t len = MIN(rest.len, (size_t)EXCHANGE_PIECE_MAX);
		msg.type = MSG_PUT;
		msg.put = (struct msg_put){ action->seq, len == rest.len, { rest.data, len } };
		rest = bytes_of(rest.data + len, rest.len - len);
		receive(link, &msg);
		hand_out();
	} while (!msg.put.last);
}

/* Takes the next thing that this host wants to send; false: there is none. */
static bool pump_one(uint64_t link)
{
	struct host *host = host_at(link);
	while (host->taken < host->actions.count) {
		struct pmi_action action = host->actions.items[host->taken++];
		if (action.type != PMI_DO_PUT && action.type != PMI_DO_WANT)
			continue;
		send_up(link, &action);
		return true;
	}
	return false;
}

static void pump(void)
{
	for (bool more = true; more;) {
		more = false;
		for (uint64_t link = host_count; link >= 1; link--)
			more |= pump_one(link);
	}
}

static void begin_hosts(uint32_t count)
{
	host_count = count;
	unions = 0;
	union_bytes = 0;
	begin_plain(count, count);
	join_up_to(count);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	for (uint32_t i = 0; i < count; i++)
		pmi_begin(&hosts[i].pmi,
			  &(struct pmi_config){ .rank_base = i * RANKS,
						.count = RANKS,
						.world_size = count * RANKS,
						.nodes = count,
						.group_rank = i,
						.kvsname = "k",
						.host = "h" },
			  &hosts[i].actions);
	pump();
}

static void end_hosts(void)
{
	for (uint32_t i = 0; i < host_count; i++) {
		pmi_done(&hosts[i].pmi);
		pmi_actions_done(&hosts[i].actions);
		hosts[i] = (struct host){ .taken = 0 };
	}
}

/* All ranks of all hosts say it; `%u` is their rank. */
static void all_say(const char *format)
{
	for (uint32_t rank = 0; rank < host_count * RANKS; rank++) {
		struct host *host = &hosts[rank / RANKS];
		char line[PMI_LINE_MAX];
		snprintf(line, sizeof(line), format, rank);
		pmi_take(&host->pmi, rank % RANKS, bytes_str(line), &host->actions);
	}
	pump();
}

static const char *heard_by(uint32_t rank)
{
	static struct buf text;
	struct buf *out = &hosts[rank / RANKS].pmi.ranks[rank % RANKS].out;
	buf_clear(&text);
	buf_append(&text, buf_data(out), buf_len(out));
	buf_clear(out);
	return buf_str(&text);
}

static const char *answer(uint32_t rank, const char *line)
{
	struct host *host = &hosts[rank / RANKS];
	heard_by(rank);
	pmi_take(&host->pmi, rank % RANKS, bytes_str(line), &host->actions);
	pump();
	return heard_by(rank);
}

static void all_init(void)
{
	all_say("cmd=init pmi_version=1 pmi_subversion=1\n");
	for (uint32_t rank = 0; rank < host_count * RANKS; rank++)
		heard_by(rank);
}

TEST(ranks_of_all_hosts_are_mapped)
{
	begin_hosts(HOSTS);
	all_init();
	ck_assert_str_eq(answer(7, "cmd=get kvsname=k key=PMI_process_mapping\n"),
			 "cmd=get_result rc=0 msg=success value=(vector,(0,5,3))\n");
	end_hosts();
}

TEST(every_rank_reads_what_every_rank_has_put_before_the_barrier)
{
	begin_hosts(HOSTS);
	all_init();
	all_say("cmd=put kvsname=k key=card-%u value=v%1$u\n");
	ck_assert_str_eq(answer(14, "cmd=get kvsname=k key=card-0\n"),
			 "cmd=get_result rc=-1 msg=key_card-0_not_found value=unknown\n");
	for (uint32_t rank = 0; rank < HOSTS * RANKS; rank++)
		heard_by(rank);
	all_say("cmd=barrier_in\n");
	for (uint32_t rank = 0; rank < HOSTS * RANKS; rank++) {
		char line[64], value[64];
		ck_assert_str_eq(heard_by(rank), "cmd=barrier_out rc=0\n");
		snprintf(line, sizeof(line), "cmd=get kvsname=k key=card-%u\n", (rank + 4) % 15);
		snprintf(value, sizeof(value), "cmd=get_result rc=0 msg=success value=v%u\n",
			 (rank + 4) % 15);
		ck_assert_str_eq(answer(rank, line), value);
	}
	end_hosts();
}

TEST(nobody_leaves_a_barrier_that_a_rank_of_another_host_has_not_entered)
{
	begin_hosts(2);
	all_init();
	for (uint32_t rank = 0; rank < 5; rank++)
		ck_assert_str_eq(answer(rank, "cmd=barrier_in\n"), "");
	ck_assert_str_eq(answer(5, "cmd=barrier_in\n"), "cmd=barrier_out rc=0\n");
	ck_assert_str_eq(heard_by(0), "cmd=barrier_out rc=0\n");
	end_hosts();
}

/* Each rank puts so many pairs of 1 KiB. */
static void put_much(uint32_t pairs)
{
	char line[PMI_LINE_MAX], value[PMI_VALUE_MAX + 1];
	memset(value, 'x', PMI_VALUE_MAX);
	value[PMI_VALUE_MAX] = '\0';
	for (uint32_t i = 0; i < pairs; i++) {
		snprintf(line, sizeof(line), "cmd=put kvsname=k key=%u-%%u value=%s\n", i, value);
		all_say(line);
	}
	all_say("cmd=barrier_in\n");
}

TEST(a_union_of_many_pieces_is_fetched_by_each_host)
{
	begin_hosts(3);
	all_init();
	unions = 0;
	put_much(30); /* 9 * 30 KiB */
	ck_assert(!hosts[2].pmi.withheld);
	ck_assert_uint_gt(unions, 3 * 9 * 30 / 2);
	ck_assert(strstr(answer(0, "cmd=get kvsname=k key=29-8\n"), "rc=0 msg=success value=xxx"));
	end_hosts();
}

TEST(of_a_union_that_is_too_long_hosts_ask_for_what_they_need)
{
	begin_hosts(3);
	all_init();
	union_bytes = 0;
	put_much(130); /* 9 * 130 KiB: more than EXCHANGE_PUSH_MAX */
	ck_assert(hosts[2].pmi.withheld);
	ck_assert_uint_le(union_bytes, 3 * EXCHANGE_PIECE_MAX);
	ck_assert(strstr(answer(0, "cmd=get kvsname=k key=129-8\n"), "rc=0 msg=success value=xxx"));
	ck_assert_str_eq(answer(0, "cmd=get kvsname=k key=nobodys\n"),
			 "cmd=get_result rc=-1 msg=key_nobodys_not_found value=unknown\n");
	end_hosts();
}

TEST(a_name_that_a_rank_has_published_is_found_on_other_hosts)
{
	begin_hosts(2);
	all_init();
	ck_assert_str_eq(answer(0, "cmd=publish_name service=s port=tag#0$\n"),
			 "cmd=publish_result rc=0 msg=success\n");
	ck_assert_str_eq(answer(5, "cmd=publish_name service=s port=other\n"),
			 "cmd=publish_result rc=-1 msg=cannot_publish\n");
	ck_assert_str_eq(answer(5, "cmd=lookup_name service=s\n"),
			 "cmd=lookup_result rc=0 port=tag#0$\n");
	ck_assert_str_eq(answer(4, "cmd=unpublish_name service=s\n"),
			 "cmd=unpublish_result rc=0 msg=success\n");
	ck_assert_str_eq(answer(0, "cmd=lookup_name service=s\n"),
			 "cmd=lookup_result rc=-1 msg=not_published\n");
	end_hosts();
}

TEST(pairs_of_another_round_or_fence_are_not_taken)
{
	begin_hosts(2);
	const struct ballot old = { 0, 0 };
	uint32_t seq = c.exchange.seq;
	receive(1, &(struct msg){
			   .type = MSG_PUT, .ballot = old, .put = { .seq = seq, .last = true } });
	receive(1, &(struct msg){ .type = MSG_PUT,
				  .ballot = c.roster.heard.ballot,
				  .put = { .seq = seq + 1, .last = true } });
	ck_assert_uint_eq(c.exchange.entered, 0);
	for (int i = 0; i < 2; i++) /* twice by the same host */
		receive(1, &(struct msg){ .type = MSG_PUT,
					  .ballot = c.roster.heard.ballot,
					  .put = { .seq = seq, .last = true } });
	ck_assert_uint_eq(c.exchange.entered, 1);
	end_hosts();
}

TEST(a_new_round_knows_nothing_of_the_pairs_of_the_last_one)
{
	max_restarts = 1;
	begin_hosts(2);
	all_init();
	all_say("cmd=put kvsname=k key=a-%u value=1\n");
	all_say("cmd=barrier_in\n");
	ck_assert_uint_gt(c.exchange.keyvals.size, 0);
	report(1, MSG_FAILED);
	join(1);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.exchange.keyvals.size, 0);
	ck_assert_uint_eq(c.exchange.seq, 0);
	end_hosts();
}
