/* The process manager's side of PMI: what ranks hear, when barriers end, and what ends a rank that
 * does not keep to the protocol. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "core/pmi/keyvals.h"
#include "core/pmi/pmi.h"

struct world {
	struct pmi pmi;
	struct pmi_actions actions;
	struct buf text;
};

static void begin(struct world *world, uint32_t count, uint32_t nodes, uint32_t rank_base)
{
	*world = (struct world){ .text = BUF_INIT };
	pmi_begin(&world->pmi,
		  &(struct pmi_config){ .rank_base = rank_base,
					.count = count,
					.world_size = count * nodes,
					.nodes = nodes,
					.kvsname = "k",
					.host = "h" },
		  &world->actions);
}

static void world_done(struct world *world)
{
	pmi_done(&world->pmi);
	pmi_actions_done(&world->actions);
	buf_done(&world->text);
}

/* What the rank hears after it has said this. */
static const char *said(struct world *world, size_t rank, const char *line)
{
	struct buf *out = &world->pmi.ranks[rank].out;
	pmi_take(&world->pmi, rank, bytes_str(line), &world->actions);
	buf_clear(&world->text);
	buf_append(&world->text, buf_data(out), buf_len(out));
	buf_clear(out);
	return buf_str(&world->text);
}

static const char *hears(struct world *world, size_t rank)
{
	return said(world, rank, "");
}

static void init_all(struct world *world)
{
	for (size_t i = 0; i < world->pmi.config.count; i++)
		ck_assert_str_eq(said(world, i, "cmd=init pmi_version=1 pmi_subversion=1\n"),
				 "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
	world->actions.count = 0;
}

static const struct pmi_action *last(const struct world *world)
{
	return &world->actions.items[world->actions.count - 1];
}

TEST(a_rank_hears_about_its_world)
{
	AUTO(world_done) struct world world;
	begin(&world, 2, 1, 0);
	init_all(&world);
	ck_assert_str_eq(said(&world, 0, "cmd=get_maxes\n"),
			 "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
	ck_assert_str_eq(said(&world, 0, "cmd=get_appnum\n"), "cmd=appnum appnum=0\n");
	ck_assert_str_eq(said(&world, 0, "cmd=get_my_kvsname\n"), "cmd=my_kvsname kvsname=k\n");
	ck_assert_str_eq(said(&world, 1, "cmd=get_universe_size\n"), "cmd=universe_size size=2\n");
	ck_assert_str_eq(said(&world, 1, "cmd=get kvsname=k key=PMI_process_mapping\n"),
			 "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))\n");
	ck_assert_str_eq(said(&world, 1, "cmd=get kvsname=k key=PMI_dead_processes\n"),
			 "cmd=get_result rc=0 msg=success value=\n");
}

TEST(pairs_are_seen_after_the_barrier_that_all_ranks_reach)
{
	AUTO(world_done) struct world world;
	begin(&world, 2, 1, 0);
	init_all(&world);
	ck_assert_str_eq(said(&world, 0, "cmd=put kvsname=k key=a value=x=1\n"),
			 "cmd=put_result rc=0 msg=success\n");
	ck_assert_str_eq(said(&world, 1, "cmd=get kvsname=k key=a\n"),
			 "cmd=get_result rc=-1 msg=key_a_not_found value=unknown\n");
	ck_assert_str_eq(said(&world, 0, "cmd=barrier_in\n"), "");
	AUTO(buf_done) struct buf missing = BUF_INIT;
	pmi_missing(&world.pmi, &missing);
	ck_assert_str_eq(buf_str(&missing), "1");
	ck_assert_str_eq(said(&world, 1, "cmd=barrier_in\n"), "cmd=barrier_out rc=0\n");
	ck_assert_str_eq(hears(&world, 0), "cmd=barrier_out rc=0\n");
	ck_assert_str_eq(said(&world, 1, "cmd=get kvsname=k key=a\n"),
			 "cmd=get_result rc=0 msg=success value=x=1\n");
}

TEST(a_line_may_come_in_pieces_and_several_at_once)
{
	AUTO(world_done) struct world world;
	begin(&world, 1, 1, 0);
	ck_assert_str_eq(said(&world, 0, "cmd=init pmi_ver"), "");
	ck_assert_str_eq(said(&world, 0, "sion=1 pmi_subversion=1\ncmd=get_appnum\ncmd=get_"),
			 "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
			 "cmd=appnum appnum=0\n");
	ck_assert_str_eq(said(&world, 0, "appnum\n"), "cmd=appnum appnum=0\n");
}

TEST(what_cannot_be_put_is_refused)
{
	AUTO(world_done) struct world world;
	AUTO(buf_done) struct buf line = BUF_INIT;
	begin(&world, 1, 1, 0);
	init_all(&world);
	ck_assert_str_eq(said(&world, 0, "cmd=put kvsname=other key=a value=1\n"),
			 "cmd=put_result rc=1 msg=wrong_name_or_key\n");
	ck_assert_str_eq(said(&world, 0, "cmd=put kvsname=k key=PMI_x value=1\n"),
			 "cmd=put_result rc=1 msg=reserved_key\n");
	buf_append_str(&line, "cmd=put kvsname=k key=a value=");
	for (int i = 0; i <= PMI_VALUE_MAX; i++)
		buf_append_char(&line, 'v');
	buf_append_str(&line, "\n");
	ck_assert_str_eq(said(&world, 0, buf_str(&line)),
			 "cmd=put_result rc=1 msg=value_too_long\n");
	ck_assert_str_eq(said(&world, 0, "cmd=get kvsname=other key=a\n"),
			 "cmd=get_result rc=-1 msg=wrong_name_or_key value=unknown\n");
}

TEST(between_init_and_finalize_a_rank_is_unfinished)
{
	AUTO(world_done) struct world world;
	begin(&world, 1, 1, 0);
	ck_assert(!pmi_is_unfinished(&world.pmi, 0));
	init_all(&world);
	ck_assert(pmi_is_unfinished(&world.pmi, 0));
	ck_assert_str_eq(said(&world, 0, "cmd=finalize\n"), "cmd=finalize_ack rc=0\n");
	ck_assert(!pmi_is_unfinished(&world.pmi, 0));
}

TEST(an_abort_has_its_code_and_its_text)
{
	AUTO(world_done) struct world world;
	begin(&world, 2, 1, 4);
	init_all(&world);
	said(&world, 1, "cmd=abort exitcode=7 message=out of luck\n");
	ck_assert_int_eq(last(&world)->type, PMI_DO_ABORT);
	ck_assert_uint_eq(last(&world)->rank, 1);
	ck_assert_int_eq(last(&world)->code, 7);
	ck_assert_str_eq(last(&world)->text, "out of luck");
	size_t count = world.actions.count;
	ck_assert_str_eq(said(&world, 1, "cmd=get_appnum\n"), ""); /* nothing more is heard of it */
	ck_assert_uint_eq(world.actions.count, count);
}

TEST(a_rank_in_a_barrier_may_abort)
{
	AUTO(world_done) struct world world;
	begin(&world, 2, 1, 0);
	init_all(&world);
	said(&world, 0, "cmd=barrier_in\ncmd=abort exitcode=3\n");
	ck_assert_int_eq(last(&world)->type, PMI_DO_ABORT);
}

TEST(another_version_is_refused_on_the_first_line)
{
	AUTO(world_done) struct world world;
	begin(&world, 1, 1, 0);
	ck_assert_str_eq(said(&world, 0, "cmd=init pmi_version=3 pmi_subversion=0\n"),
			 "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
	ck_assert(!pmi_is_unfinished(&world.pmi, 0));
}

TEST(names_are_published_found_and_withdrawn)
{
	AUTO(world_done) struct world world;
	begin(&world, 2, 1, 0);
	init_all(&world);
	ck_assert_str_eq(said(&world, 1, "cmd=lookup_name service=s\n"),
			 "cmd=lookup_result rc=-1 msg=not_published\n");
	ck_assert_str_eq(said(&world, 0, "cmd=publish_name service=s port=tag#0$\n"),
			 "cmd=publish_result rc=0 msg=success\n");
	ck_assert_str_eq(said(&world, 1, "cmd=publish_name service=s port=other\n"),
			 "cmd=publish_result rc=-1 msg=cannot_publish\n");
	ck_assert_str_eq(said(&world, 1, "cmd=lookup_name service=s\n"),
			 "cmd=lookup_result rc=0 port=tag#0$\n");
	ck_assert_str_eq(said(&world, 0, "cmd=unpublish_name service=s\n"),
			 "cmd=unpublish_result rc=0 msg=success\n");
	ck_assert_str_eq(said(&world, 0, "cmd=unpublish_name service=s\n"),
			 "cmd=unpublish_result rc=-1 msg=not_published\n");
}

TEST(spawning_is_refused_once_for_all_commands_of_a_call)
{
	AUTO(world_done) struct world world;
	begin(&world, 1, 1, 0);
	init_all(&world);
	ck_assert_str_eq(said(&world, 0,
			      "mcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=2\nspawnssofar=1\n"
			      "endcmd\n"),
			 "");
	ck_assert_str_eq(said(&world, 0,
			      "mcmd=spawn\nnprocs=1\nexecname=b\ntotspawns=2\nspawnssofar=2\n"
			      "endcmd\n"),
			 "cmd=spawn_result rc=-1 msg=not_supported\n");
	ck_assert_str_eq(said(&world, 0, "cmd=get_appnum\n"), "cmd=appnum appnum=0\n");
}

TEST(a_rank_that_breaks_the_protocol_is_blamed_and_heard_no_more)
{
	static const char *const wrong[] = {
		"hello\n",
		"cmd=get_appnum\n", /* before init */
		"cmd=init pmi_version=1 pmi_subversion=1\ncmd=dance\n",
		"cmd=init pmi_version=1 pmi_subversion=1\ncmd=barrier_in\ncmd=barrier_in\n",
	};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		AUTO(world_done) struct world world;
		begin(&world, 2, 1, 0);
		said(&world, 1, wrong[i]);
		ck_assert_msg(last(&world)->type == PMI_DO_BLAME, "%s", wrong[i]);
		ck_assert_uint_eq(last(&world)->rank, 1);
		size_t count = world.actions.count;
		said(&world, 1, "cmd=abort exitcode=1\n");
		ck_assert_uint_eq(world.actions.count, count);
		ck_assert(!pmi_is_unfinished(&world.pmi, 1));
	}
}

TEST(a_rank_is_told_to_say_init_first_whatever_it_asks)
{
	static const char *const names[] = {
		"get_maxes",	     "get_appnum",  "get_my_kvsname",
		"get_universe_size", "put",	    "get",
		"barrier_in",	     "finalize",    "publish_name",
		"unpublish_name",    "lookup_name", "create_kvs",
		"destroy_kvs",	     "getbyidx",    "spawn",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO(world_done) struct world world;
		char line[64], blame[64];
		begin(&world, 1, 1, 0);
		snprintf(line, sizeof(line), "cmd=%s\n", names[i]);
		snprintf(blame, sizeof(blame), "it asked for %s without init", names[i]);
		ck_assert_str_eq(said(&world, 0, line), "");
		ck_assert_int_eq(last(&world)->type, PMI_DO_BLAME);
		ck_assert_str_eq(last(&world)->text, blame);
	}
	static const char *const early[] = { "singinit", "init" };
	for (size_t i = 0; i < ARRAY_LEN(early); i++) {
		AUTO(world_done) struct world world;
		char line[64];
		begin(&world, 1, 1, 0);
		snprintf(line, sizeof(line), "cmd=%s\n", early[i]);
		said(&world, 0, line);
		ck_assert_int_eq(last(&world)->type, PMI_DO_WRITE);
	}
}

TEST(what_follows_a_barrier_in_one_piece_is_answered_to_its_rank)
{
	AUTO(world_done) struct world world;
	begin(&world, 2, 1, 0);
	init_all(&world);
	said(&world, 0, "cmd=barrier_in\n");
	ck_assert_str_eq(said(&world, 1, "cmd=barrier_in\ncmd=get_appnum\n"),
			 "cmd=barrier_out rc=0\ncmd=appnum appnum=0\n");
	ck_assert_str_eq(hears(&world, 0), "cmd=barrier_out rc=0\n");
}

TEST(pairs_have_a_limit_in_all)
{
	AUTO(world_done) struct world world;
	begin(&world, 1, 1, 0);
	init_all(&world);
	char value[PMI_VALUE_MAX + 1], line[2 * PMI_VALUE_MAX];
	memset(value, 'v', PMI_VALUE_MAX);
	value[PMI_VALUE_MAX] = '\0';
	size_t room = KEYVALS_SIZE_MAX / (PMI_VALUE_MAX + 16);
	for (size_t i = 0; i < room + 200; i++) {
		snprintf(line, sizeof(line), "cmd=put kvsname=k key=%08zu value=%s\n", i, value);
		const char *answer = said(&world, 0, line);
		world.actions.count = 0;
		if (strstr(answer, "rc=1")) {
			ck_assert_str_eq(answer, "cmd=put_result rc=1 msg=no_room\n");
			ck_assert_uint_gt(i, room - 200);
			return;
		}
	}
	ck_abort_msg("all found room");
}

TEST(names_have_a_limit_in_all)
{
	AUTO(world_done) struct world world;
	begin(&world, 1, 1, 0);
	init_all(&world);
	char port[PMI_VALUE_MAX + 1], line[PMI_LINE_MAX];
	memset(port, 'p', sizeof(port) - 1);
	port[sizeof(port) - 1] = '\0';
	size_t room = KEYVALS_SIZE_MAX / (sizeof(port) + 20);
	for (size_t i = 0; i < room + 100; i++) {
		snprintf(line, sizeof(line), "cmd=publish_name service=%08zu port=%s\n", i, port);
		said(&world, 0, line);
		world.actions.count = 0;
		ck_assert_uint_le(world.pmi.keyvals.size, KEYVALS_SIZE_MAX);
	}
	ck_assert_uint_gt(world.pmi.keyvals.size, KEYVALS_SIZE_MAX - 2 * sizeof(port));
	ck_assert_ptr_nonnull(
		strstr(said(&world, 0, "cmd=lookup_name service=00000000\n"), "rc=0"));
	snprintf(line, sizeof(line), "cmd=lookup_name service=%08zu\n", room + 99);
	ck_assert_ptr_nonnull(strstr(said(&world, 0, line), "rc=-1"));
}

TEST(a_key_has_fewer_bytes_than_its_limit)
{
	for (size_t len = PMI_KEY_MAX - 1; len <= PMI_KEY_MAX; len++) {
		AUTO(world_done) struct world world;
		char key[PMI_KEY_MAX + 1], line[200];
		memset(key, 'a', len);
		key[len] = '\0';
		begin(&world, 1, 1, 0);
		init_all(&world);
		snprintf(line, sizeof(line), "cmd=put kvsname=k key=%s value=1\n", key);
		ck_assert_str_eq(said(&world, 0, line),
				 len < PMI_KEY_MAX ? "cmd=put_result rc=0 msg=success\n"
						   : "cmd=put_result rc=1 msg=wrong_name_or_key\n");
	}
}

TEST(a_line_beyond_the_limit_is_refused_though_it_ends)
{
	for (int more = 0; more < 2; more++) {
		AUTO(world_done) struct world world;
		AUTO(buf_done) struct buf line = BUF_INIT;
		begin(&world, 1, 1, 0);
		init_all(&world);
		buf_append_str(&line, "cmd=get_appnum x=");
		while (buf_len(&line) < PMI_LINE_MAX + (size_t)more)
			buf_append_char(&line, 'x');
		buf_append_char(&line, '\n');
		said(&world, 0, buf_str(&line));
		ck_assert_int_eq(last(&world)->type, more ? PMI_DO_BLAME : PMI_DO_WRITE);
	}
}

TEST(a_line_without_an_end_is_cut_off_at_the_limit)
{
	AUTO(world_done) struct world world;
	begin(&world, 1, 1, 0);
	for (int i = 0; i <= PMI_LINE_MAX; i++)
		said(&world, 0, "x");
	ck_assert_int_eq(last(&world)->type, PMI_DO_BLAME);
}

/* ---- several hosts ---- */

/* What host `from` sent up, as part of the union. */
static void add_pairs(struct buf *all, const struct world *from)
{
	buf_append(all, last(from)->pairs.data, last(from)->pairs.len);
}

static void bring(struct world *world, uint32_t seq, const struct buf *all)
{
	uint32_t size = (uint32_t)buf_len(all), half = size / 2;
	pmi_union(&world->pmi, seq, size, 0, bytes_of(buf_data(all), half), &world->actions);
	pmi_union(&world->pmi, seq, size, half, bytes_of(buf_data(all) + half, size - half),
		  &world->actions);
}

TEST(the_first_fence_tells_which_ranks_share_a_host)
{
	AUTO(world_done) struct world a, b;
	AUTO(buf_done) struct buf all = BUF_INIT;
	begin(&a, 2, 2, 0);
	begin(&b, 2, 2, 2);
	ck_assert_int_eq(last(&a)->type, PMI_DO_PUT);
	ck_assert_uint_eq(last(&a)->seq, 0);
	add_pairs(&all, &b);
	add_pairs(&all, &a);
	init_all(&a);
	ck_assert_str_eq(said(&a, 1, "cmd=get kvsname=k key=PMI_process_mapping\n"), "");
	bring(&a, 0, &all);
	ck_assert_str_eq(hears(&a, 1), "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))\n");
	ck_assert_str_eq(said(&a, 0, "cmd=get kvsname=k key=PMI_process_mapping\n"),
			 "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))\n");
}

TEST(a_barrier_over_hosts_ends_with_the_union)
{
	AUTO(world_done) struct world a, b;
	AUTO(buf_done) struct buf all = BUF_INIT;
	begin(&a, 1, 2, 0);
	begin(&b, 1, 2, 1);
	add_pairs(&all, &a);
	add_pairs(&all, &b);
	init_all(&a);
	init_all(&b);
	/* a barrier that was entered before the first fence was over waits for that */
	said(&a, 0, "cmd=put kvsname=k key=from-a value=1\ncmd=barrier_in\n");
	ck_assert_int_eq(last(&a)->type, PMI_DO_WRITE);
	bring(&a, 0, &all);
	bring(&b, 0, &all);
	ck_assert_int_eq(last(&a)->type, PMI_DO_PUT);
	ck_assert_uint_eq(last(&a)->seq, 1);
	ck_assert_uint_eq(last(&a)->rank, 0); /* it is nobody's */
	said(&b, 0, "cmd=put kvsname=k key=from-b value=2\ncmd=barrier_in\n");
	buf_clear(&all);
	add_pairs(&all, &a);
	add_pairs(&all, &b);
	hears(&a, 0);
	hears(&b, 0);
	bring(&a, 1, &all);
	bring(&b, 1, &all);
	ck_assert_str_eq(hears(&a, 0), "cmd=barrier_out rc=0\n");
	ck_assert_str_eq(hears(&b, 0), "cmd=barrier_out rc=0\n");
	ck_assert_str_eq(said(&a, 0, "cmd=get kvsname=k key=from-b\n"),
			 "cmd=get_result rc=0 msg=success value=2\n");
	ck_assert_str_eq(said(&b, 0, "cmd=get kvsname=k key=from-a\n"),
			 "cmd=get_result rc=0 msg=success value=1\n");
}

TEST(hosts_of_different_sizes_are_mapped_in_the_order_of_their_ranks)
{
	AUTO(world_done) struct world world;
	AUTO(buf_done) struct buf all = BUF_INIT;
	begin(&world, 2, 4, 8);
	keyval_put(&all, bytes_str("PMI_host.10"), bytes_str("1"));
	add_pairs(&all, &world);
	keyval_put(&all, bytes_str("PMI_host.0"), bytes_str("4"));
	keyval_put(&all, bytes_str("PMI_host.4"), bytes_str("4"));
	bring(&world, 0, &all);
	init_all(&world);
	ck_assert_str_eq(
		said(&world, 0, "cmd=get kvsname=k key=PMI_process_mapping\n"),
		"cmd=get_result rc=0 msg=success value=(vector,(0,2,4),(2,1,2),(3,1,1))\n");
}

TEST(a_mapping_that_is_too_long_is_left_to_the_library)
{
	AUTO(world_done) struct world world;
	AUTO(buf_done) struct buf all = BUF_INIT;
	char key[32], count[8];
	begin(&world, 1, 200, 0);
	add_pairs(&all, &world);
	for (uint32_t i = 1, base = 1; i < 200; base += 1 + i % 2, i++) {
		snprintf(key, sizeof(key), "PMI_host.%u", base);
		snprintf(count, sizeof(count), "%u", 1 + i % 2);
		keyval_put(&all, bytes_str(key), bytes_str(count));
	}
	bring(&world, 0, &all);
	init_all(&world);
	ck_assert_str_eq(said(&world, 0, "cmd=get kvsname=k key=PMI_process_mapping\n"),
			 "cmd=get_result rc=-1 msg=too_long value=unknown\n");
}

TEST(damaged_pairs_from_another_host_are_left_out)
{
	struct bytes rest = bytes_of("", 0), key, value;
	ck_assert_int_eq(keyval_next(&rest, &key, &value), 0);
	rest = bytes_of("\1\0\377\377ab", 6);
	ck_assert_int_lt(keyval_next(&rest, &key, &value), 0);
	rest = bytes_of("\1\0", 2);
	ck_assert_int_lt(keyval_next(&rest, &key, &value), 0);
}
