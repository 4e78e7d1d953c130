/* Tokens, and the greeting with one, byte by byte. */
#include "unit.h"

#include "link_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "net/greeting.h"

/* Gives what is in `from` to the greeting, `step` bytes at a time, as a link would. */
static void pass(struct greeting *to, struct buf *from, struct buf *kept, size_t step,
		 struct buf *answers)
{
	while (buf_len(from) > 0) {
		size_t len = MIN(step, buf_len(from));
		buf_append(kept, buf_data(from), len);
		buf_consume(from, len);
		size_t used = greeting_feed(to, buf_data(kept), buf_len(kept), answers);
		buf_consume(kept, used);
	}
}

TEST(the_greeting_does_not_depend_on_how_it_is_cut)
{
	struct token token = make_token("secret");
	const struct link_self self = { "job", &token };
	for (size_t step = 1; step < 200; step++) {
		struct greeting a, b;
		AUTO(buf_done) struct buf to_a = BUF_INIT;
		AUTO(buf_done) struct buf to_b = BUF_INIT;
		AUTO(buf_done) struct buf at_a = BUF_INIT;
		AUTO(buf_done) struct buf at_b = BUF_INIT;
		greeting_connect(&a, &self, ROLE_AGENT, &to_b);
		greeting_accept(&b, &self);
		pass(&b, &to_b, &at_b, step, &to_a); /* the openings */
		pass(&a, &to_a, &at_a, step, &to_b);
		pass(&b, &to_b, &at_b, step, &to_a); /* HELLO */
		pass(&a, &to_a, &at_a, step, &to_b); /* CHALLENGE */
		pass(&b, &to_b, &at_b, step, &to_a); /* PROOF */
		ck_assert_int_eq(b.state, GREETING_KNOWN);
		greeting_welcome(&b, &to_a);
		pass(&a, &to_a, &at_a, step, &to_b); /* WELCOME */
		ck_assert_int_eq(a.state, GREETING_KNOWN);
		ck_assert_uint_eq(buf_len(&at_a) + buf_len(&at_b), 0);
	}
}

/* All that both say, while one claims to be of an earlier version. */
static void talk(struct greeting *a, struct greeting *b, int minor_of_a, int minor_of_b,
		 struct buf *said)
{
	AUTO(buf_done) struct buf to_a = BUF_INIT;
	AUTO(buf_done) struct buf to_b = BUF_INIT;
	AUTO(buf_done) struct buf at_a = BUF_INIT;
	AUTO(buf_done) struct buf at_b = BUF_INIT;
	greeting_connect(a, a->self, ROLE_AGENT, &to_b);
	buf_data(&to_b)[FRAME_OPENING_SIZE - 1] = (unsigned char)minor_of_a;
	for (bool first = true; buf_len(&to_b) > 0; first = false) {
		buf_append(said, buf_data(&to_b), buf_len(&to_b));
		pass(b, &to_b, &at_b, SIZE_MAX, &to_a);
		if (b->state == GREETING_KNOWN)
			greeting_welcome(b, &to_a);
		if (first)
			buf_data(&to_a)[FRAME_OPENING_SIZE - 1] = (unsigned char)minor_of_b;
		buf_append(said, buf_data(&to_a), buf_len(&to_a));
		pass(a, &to_a, &at_a, SIZE_MAX, &to_b);
	}
}

TEST(the_name_of_the_run_is_never_sent_in_clear_where_there_is_a_token)
{
	static const struct {
		const char *accepting;
		int minor_of_a, minor_of_b;
		bool clear;
	} cases[] = {
		{ "precious-run", FRAME_MINOR, FRAME_MINOR, false },
		{ "another-run", FRAME_MINOR, FRAME_MINOR, false },
		{ "precious-run", FRAME_MINOR_HIDES - 1, FRAME_MINOR_HIDES - 1, true },
		{ "another-run", FRAME_MINOR_HIDES - 1, FRAME_MINOR_HIDES - 1, true },
	};
	struct token token = make_token("secret");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct link_self ours = { "precious-run", &token };
		const struct link_self theirs = { cases[i].accepting, &token };
		struct greeting a = { .self = &ours }, b;
		AUTO(buf_done) struct buf said = BUF_INIT;
		greeting_accept(&b, &theirs);
		talk(&a, &b, cases[i].minor_of_a, cases[i].minor_of_b, &said);
		bool same = strcmp(ours.run_id, theirs.run_id) == 0;
		ck_assert_int_eq(a.state, same ? GREETING_KNOWN : GREETING_FAILED);
		ck_assert_int_eq(b.state, same ? GREETING_KNOWN : GREETING_FAILED);
		if (!same)
			ck_assert_str_eq(a.why, "it belongs to the run 'another-run', this one is "
						"'precious-run'");
		ck_assert_int_eq(memmem(buf_data(&said), buf_len(&said), "-run", 4) != NULL,
				 cases[i].clear);
	}
}

TEST(a_run_is_hidden_from_who_has_another_token)
{
	struct token token = make_token("secret"), guess = make_token("guess");
	const struct link_self ours = { "precious-run", &token };
	const struct link_self theirs = { "precious-run", &guess };
	struct greeting a = { .self = &ours }, b;
	AUTO(buf_done) struct buf said = BUF_INIT;
	greeting_accept(&b, &theirs);
	talk(&a, &b, FRAME_MINOR, FRAME_MINOR, &said);
	ck_assert_str_eq(a.why, "token mismatch");
	ck_assert_ptr_null(strstr(b.hello.run_id, "precious"));
}

/* A peer that does not know the token poses as the coordinator. */
static void expect_impostor_found(bool challenges, bool reflects)
{
	struct token token = make_token("secret");
	const struct link_self self = { "job", &token };
	struct greeting a;
	AUTO(buf_done) struct buf said = BUF_INIT;
	AUTO(buf_done) struct buf lies = BUF_INIT;
	greeting_connect(&a, &self, ROLE_AGENT, &said);
	buf_clear(&said);
	frame_put_opening(&lies);
	if (challenges)
		frame_put_challenge(&lies, &(struct frame_challenge){ .nonce = "x" });
	size_t used = greeting_feed(&a, buf_data(&lies), buf_len(&lies), &said);
	ck_assert_uint_eq(used, buf_len(&lies));
	struct frame_welcome welcome = { .version = "1" };
	if (reflects) /* the proof that it was just given */
		memcpy(welcome.proof, buf_data(&said) + FRAME_HEADER_SIZE, sizeof(welcome.proof));
	buf_clear(&lies);
	frame_put_welcome(&lies, &welcome);
	greeting_feed(&a, buf_data(&lies), buf_len(&lies), &said);
	ck_assert_int_eq(a.state, GREETING_FAILED);
	ck_assert_int_eq(a.end, LINK_REFUSED);
	ck_assert_msg(strstr(a.why, "does not know the token"), "%s", a.why);
}

TEST(a_coordinator_must_prove_itself_too)
{
	expect_impostor_found(false, false);
	expect_impostor_found(true, false);
	expect_impostor_found(true, true);
}

TEST(a_proof_is_good_for_one_run_role_direction_and_pair_of_nonces)
{
	struct token token = make_token("secret");
	struct frame_hello hello = { .role = ROLE_AGENT, .run_id = "job" };
	struct frame_challenge challenge = { .nonce = "n" };
	unsigned char proof[FRAME_PROOF_SIZE];
	token_prove(&token, TOKEN_OF_CONNECTING, &hello, &challenge, proof);
	ck_assert(token_check(&token, TOKEN_OF_CONNECTING, &hello, &challenge, proof));
	ck_assert(!token_check(&token, TOKEN_OF_ACCEPTING, &hello, &challenge, proof));
	struct frame_hello changed = hello;
	changed.role = ROLE_PROBE;
	ck_assert(!token_check(&token, TOKEN_OF_CONNECTING, &changed, &challenge, proof));
	changed = hello;
	changed.run_id[0] = 'k';
	ck_assert(!token_check(&token, TOKEN_OF_CONNECTING, &changed, &challenge, proof));
	changed = hello;
	changed.nonce[15]++;
	ck_assert(!token_check(&token, TOKEN_OF_CONNECTING, &changed, &challenge, proof));
	challenge.nonce[15]++;
	ck_assert(!token_check(&token, TOKEN_OF_CONNECTING, &hello, &challenge, proof));
}

TEST(a_token_comes_from_its_file_first_and_without_the_newline_at_its_end)
{
	char path[] = "/tmp/muster-token-XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_eq(fd_write_all(fd, "secret\n", 7), 0);
	struct token plain = make_token("secret"), loaded;
	setenv(TOKEN_VARIABLE, "another", 1);
	ck_assert_int_eq(token_load(path, &loaded, NULL), 1);
	ck_assert(memcmp(&plain, &loaded, sizeof(plain)) == 0);
	ck_assert_int_eq(token_load(NULL, &loaded, NULL), 1);
	ck_assert(memcmp(&plain, &loaded, sizeof(plain)) != 0);
	unsetenv(TOKEN_VARIABLE);
	ck_assert_int_eq(token_load(NULL, &loaded, NULL), 0);
	struct err err = ERR_INIT;
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(token_load(path, &loaded, &err), -EINVAL);
	ck_assert_msg(strstr(err.msg, path) && strstr(err.msg, "empty"), "%s", err.msg);
	unlink(path);
	close(fd);
	ck_assert_int_eq(token_load(path, &loaded, &err), -ENOENT);
}
