#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "proto/etcd.h"

/* Answers as captured from etcd 3.4. */
#define HEADER \
	"\"header\":{\"cluster_id\":\"324952591200643719\",\"member_id\":\"3319814642761637952\"," \
	"\"revision\":\"2\",\"raft_term\":\"2\"}"
#define PAIR \
	"{\"key\":\"L211c3Rlci94\",\"create_revision\":\"2\",\"mod_revision\":\"2\",\"version\":" \
	"\"1\"," \
	"\"value\":\"aGVsbG8=\",\"lease\":\"2324035401755657735\"}"

TEST(requests_are_what_the_gateway_takes)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	etcd_put_read(&out, "/muster/x");
	ck_assert_str_eq(buf_str(&out), "{\"key\":\"L211c3Rlci94\"}");
	buf_clear(&out);
	etcd_put_campaign(&out, "/muster/x", "hello", 7);
	ck_assert_str_eq(
		buf_str(&out),
		"{\"compare\":[{\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":"
		"\"0\","
		"\"key\":\"L211c3Rlci94\"}],\"success\":[{\"request_put\":{\"key\":"
		"\"L211c3Rlci94\","
		"\"value\":\"aGVsbG8=\",\"lease\":\"7\"}}],\"failure\":[{\"request_range\":"
		"{\"key\":\"L211c3Rlci94\"}}]}");
	buf_clear(&out);
	etcd_put_watch(&out, "/muster/x", 8);
	ck_assert_str_eq(
		buf_str(&out),
		"{\"create_request\":{\"key\":\"L211c3Rlci94\",\"start_revision\":\"8\"}}");
	buf_clear(&out);
	ck_assert_int_eq(etcd_put_authenticate(&out, "a\"b", "p\\w"), 0);
	ck_assert_str_eq(buf_str(&out), "{\"name\":\"a\\\"b\",\"password\":\"p\\\\w\"}");
	ck_assert_int_eq(etcd_put_authenticate(&out, "a", "\xff"), -EINVAL);
}

static int get_read(const char *text, struct etcd_key *key)
{
	return etcd_get_read(text, strlen(text), key, NULL);
}

TEST(a_key_that_is_there_is_read_with_its_lease)
{
	struct etcd_key key;
	ck_assert_int_eq(get_read("{" HEADER ",\"kvs\":[" PAIR "],\"count\":\"1\"}", &key), 0);
	ck_assert(key.present);
	ck_assert_str_eq(key.value, "hello");
	ck_assert_uint_eq(key.create_revision, 2);
	ck_assert_uint_eq(key.revision, 2);
	ck_assert_int_eq(key.lease, 2324035401755657735);
}

TEST(a_key_that_is_not_there_is_absent)
{
	struct etcd_key key = { .present = true };
	ck_assert_int_eq(get_read("{" HEADER "}", &key), 0);
	ck_assert(!key.present);
}

TEST(an_invalid_value_counts_as_empty)
{
	static const char *const values[] = { "\"AAAA\"", "\"not base64!\"", "7", "null" };
	struct etcd_key key;
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		AUTO_FREE char *text =
			mem_printf("{" HEADER
				   ",\"kvs\":[{\"create_revision\":\"2\",\"value\":%s}]}",
				   values[i]);
		ck_assert_int_eq(get_read(text, &key), 0);
		ck_assert(key.present);
		ck_assert_str_eq(key.value, "");
		ck_assert_int_eq(key.lease, 0);
	}
	char longest[2 * ETCD_VALUE_MAX];
	memset(longest, 'A', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	AUTO_FREE char *text = mem_printf(
		"{" HEADER ",\"kvs\":[{\"create_revision\":\"2\",\"value\":\"%s\"}]}", longest);
	ck_assert_int_eq(get_read(text, &key), 0);
	ck_assert_str_eq(key.value, "");
}

TEST(answers_without_what_we_need_are_wrong)
{
	static const char *const cases[] = {
		"",
		"{}",
		"[]",
		"{\"header\":7}",
		"{\"header\":{\"revision\":\"x\"}}",
		"{\"header\":{\"revision\":\"-1\"}}",
		"{\"header\":{\"revision\":\"99999999999999999999\"}}",
		"{" HEADER ",\"kvs\":[{}]}",
		"{" HEADER ",\"kvs\":[7]}",
		"{" HEADER,
	};
	struct etcd_key key;
	bool won, alive;
	int64_t lease;
	uint64_t ttl_s;
	char token[ETCD_TOKEN_MAX];
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *text = cases[i];
		size_t len = strlen(text);
		struct err err = ERR_INIT;
		ck_assert_msg(etcd_get_read(text, len, &key, &err) == -EPROTO && err.code == EPROTO,
			      "%s", text);
		ck_assert_int_eq(etcd_get_grant(text, len, &lease, &ttl_s, NULL), -EPROTO);
		ck_assert_int_eq(etcd_get_keep(text, len, &alive, NULL), -EPROTO);
		ck_assert_int_eq(etcd_get_token(text, len, token, NULL), -EPROTO);
	}
	ck_assert_int_eq(etcd_get_campaign("{}", 2, &won, &key, NULL), -EPROTO);
}

TEST(a_campaign_is_won_with_the_revision_of_its_write)
{
	static const char text[] =
		"{" HEADER ",\"succeeded\":true,\"responses\":[{\"response_put\":{"
		"\"header\":{\"revision\":\"2\"}}}]}";
	struct etcd_key key;
	bool won = false;
	ck_assert_int_eq(etcd_get_campaign(text, strlen(text), &won, &key, NULL), 0);
	ck_assert(won);
	ck_assert_uint_eq(key.create_revision, 2);
}

TEST(a_lost_campaign_tells_who_won)
{
	static const char text[] =
		"{" HEADER ",\"responses\":[{\"response_range\":{\"header\":{\"revision\":\"2\"},"
		"\"kvs\":[" PAIR "],\"count\":\"1\"}}]}";
	struct etcd_key key;
	bool won = true;
	ck_assert_int_eq(etcd_get_campaign(text, strlen(text), &won, &key, NULL), 0);
	ck_assert(!won && key.present);
	ck_assert_str_eq(key.value, "hello");
}

TEST(a_lease_that_is_gone_has_no_time_to_live)
{
	static const char kept[] =
		"{\"result\":{" HEADER ",\"ID\":\"2324035401755657735\",\"TTL\":\"5\"}}";
	static const char gone[] = "{\"result\":{" HEADER ",\"ID\":\"2324035401755657735\"}}";
	bool alive = false;
	ck_assert_int_eq(etcd_get_keep(kept, strlen(kept), &alive, NULL), 0);
	ck_assert(alive);
	ck_assert_int_eq(etcd_get_keep(gone, strlen(gone), &alive, NULL), 0);
	ck_assert(!alive);
}

TEST(a_token_that_could_break_a_header_is_refused)
{
	static const char good[] = "{\"token\":\"abc.17\"}",
			  bad[] = "{\"token\":\"a\\r\\nHost: x\"}";
	char token[ETCD_TOKEN_MAX];
	ck_assert_int_eq(etcd_get_token(good, strlen(good), token, NULL), 0);
	ck_assert_str_eq(token, "abc.17");
	ck_assert_int_eq(etcd_get_token(bad, strlen(bad), token, NULL), -EPROTO);
}

static int get_watch(const char *text, enum etcd_watch *what, struct err *err)
{
	return etcd_get_watch(text, strlen(text), what, err);
}

TEST(a_watch_tells_of_changes_and_of_its_end)
{
	enum etcd_watch what;
	struct err err = ERR_INIT;
	ck_assert_int_eq(get_watch("{\"result\":{" HEADER ",\"created\":true}}", &what, NULL), 0);
	ck_assert_int_eq(what, ETCD_WATCH_NOTHING);
	ck_assert_int_eq(get_watch("{\"result\":{" HEADER ",\"events\":[{\"type\":\"DELETE\"}]}}",
				   &what, NULL),
			 0);
	ck_assert_int_eq(what, ETCD_WATCH_CHANGED);
	ck_assert_int_eq(
		get_watch("{\"result\":{\"canceled\":true,\"cancel_reason\":\"comp\\u00e9\"}}",
			  &what, &err),
		-ECANCELED);
	ck_assert_str_eq(err.msg, "comp??");
	ck_assert_int_eq(get_watch("{\"error\":{\"message\":\"no leader\"}}", &what, &err),
			 -ECANCELED);
	ck_assert_str_eq(err.msg, "no leader");
	ck_assert_int_eq(get_watch("nonsense", &what, NULL), -EPROTO);
}

TEST(reasons_of_etcd_are_kept_short_and_printable)
{
	char reason[ETCD_REASON_MAX];
	static const char text[] =
		"{\"error\":\"etcdserver: requested lease not found\",\"code\":5}";
	etcd_get_error(text, strlen(text), reason);
	ck_assert_str_eq(reason, "etcdserver: requested lease not found");
	etcd_get_error("<html>", 6, reason);
	ck_assert_str_eq(reason, "");
	AUTO_FREE char *big = mem_printf("{\"error\":\"\\u001b[2J%0500d\"}", 0);
	etcd_get_error(big, strlen(big), reason);
	ck_assert_uint_eq(strlen(reason), ETCD_REASON_MAX - 1);
	ck_assert_int_eq(reason[0], '?');
}
