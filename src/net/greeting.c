#include "net/greeting.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/str.h"

#define HIDDEN_TEXT_MAX ((FRAME_TEXT_MAX - 1) / 2) /* it goes as hexadecimal digits */
#define HIDDEN_NAME_MAX 40
#define HEX_DIGITS "0123456789abcdef"
#define AUTH_DIFFERS \
	"it authenticates with %s and this side with %s: munge does not work on one of the two " \
	"hosts, or --rdzv-conf auth= was not given to all"

static enum frame_auth auth_of(const struct link_self *self)
{
	return self->token ? AUTH_TOKEN : self->munge ? AUTH_MUNGE : AUTH_NONE;
}

/* The token that proofs and keys are made with: the given one, or the one that both agreed on. */
static const struct token *token_of(const struct greeting *greeting)
{
	enum frame_auth auth = auth_of(greeting->self);
	return auth == AUTH_TOKEN   ? greeting->self->token
	       : auth == AUTH_MUNGE ? &greeting->agreed
				    : NULL;
}

static enum token_direction own_direction(const struct greeting *greeting)
{
	return greeting->accepting ? TOKEN_OF_ACCEPTING : TOKEN_OF_CONNECTING;
}

static enum token_direction peers_direction(const struct greeting *greeting)
{
	return greeting->accepting ? TOKEN_OF_CONNECTING : TOKEN_OF_ACCEPTING;
}

/* Where both prove themselves, the name of the run goes with the proof, for the peer's eyes only.
 */
static bool hides_run(const struct greeting *greeting)
{
	return auth_of(greeting->self) != AUTH_NONE && greeting->minor >= FRAME_MINOR_HIDES;
}

/* Munge: a key for this connection. */
static void put_key(struct greeting *greeting, struct buf *out)
{
	token_make_pair(&greeting->pair);
	frame_put_key(out, &greeting->pair.public);
}

static void make_hello(struct greeting *greeting, enum frame_role role)
{
	struct frame_hello *hello = &greeting->hello;
	hello->role = role;
	hello->auth = auth_of(greeting->self);
	random_bytes(hello->nonce, FRAME_NONCE_SIZE);
	snprintf(hello->version, sizeof(hello->version), "%s", MUSTER_VERSION);
	snprintf(hello->run_id, sizeof(hello->run_id), "%s", greeting->self->run_id);
}

static void put_hello(struct greeting *greeting, struct buf *out)
{
	struct frame_hello hello = greeting->hello;
	if (hides_run(greeting))
		memset(hello.run_id, 0, sizeof(hello.run_id));
	frame_put_hello(out, &hello);
	if (hello.auth == AUTH_MUNGE)
		put_key(greeting, out);
}

void greeting_connect(struct greeting *greeting, const struct link_self *self, enum frame_role role,
		      struct buf *out)
{
	*greeting = (struct greeting){ .self = self, .state = GREETING_OPENING };
	frame_put_opening(out);
	make_hello(greeting, role);
	if (greeting->hello.auth == AUTH_NONE)
		put_hello(greeting, out); /* else when it is known what the peer understands */
}

void greeting_accept(struct greeting *greeting, const struct link_self *self)
{
	*greeting = (struct greeting){ .self = self, .accepting = true, .state = GREETING_OPENING };
}

/* ---- failing ---- */

/* How a refusal ends a link. */
static enum link_end_kind end_of(enum frame_refusal reason)
{
	static const enum link_end_kind ends[] = {
		[REFUSAL_VERSION] = LINK_REFUSED, [REFUSAL_RUN_ID] = LINK_REFUSED,
		[REFUSAL_TOKEN] = LINK_REFUSED,	  [REFUSAL_STANDBY] = LINK_STANDBY,
		[REFUSAL_BROKEN] = LINK_BROKEN,	  [REFUSAL_BUSY] = LINK_BUSY,
	};
	static_assert(ARRAY_LEN(ends) == REFUSAL_COUNT, "every refusal ends a link somehow");
	return ends[reason];
}

PRINTF_LIKE(3, 4)
static void fail(struct greeting *greeting, enum link_end_kind end, const char *fmt, ...)
{
	greeting->state = GREETING_FAILED;
	greeting->end = end;
	va_list args;
	va_start(args, fmt);
	vsnprintf(greeting->why, sizeof(greeting->why), fmt, args);
	va_end(args);
}

void greeting_refuse(struct greeting *greeting, enum frame_refusal reason, const char *text,
		     struct buf *out)
{
	frame_put_refused(out, reason, text);
	fail(greeting, end_of(reason), "%s", text);
}

/* Says which runs they are, to a peer that has proved itself and to nobody else. */
static void put_other_run(struct greeting *greeting, const char *text, struct buf *out)
{
	AUTO(buf_done) struct buf hex = BUF_INIT;
	char hidden[HIDDEN_TEXT_MAX + 1];
	if (!hides_run(greeting)) {
		frame_put_refused(out, REFUSAL_RUN_ID, text);
		return;
	}
	snprintf(hidden, sizeof(hidden), "%s", text);
	size_t len = strlen(hidden);
	token_mask(token_of(greeting), TOKEN_OF_ACCEPTING, &greeting->hello, &greeting->challenge,
		   hidden, len);
	for (size_t i = 0; i < len; i++)
		buf_printf(&hex, "%02x", (unsigned char)hidden[i]);
	frame_put_refused(out, REFUSAL_RUN_ID, buf_str(&hex));
}

static int digit(char c)
{
	return (int)(strchr(HEX_DIGITS, c) - HEX_DIGITS);
}

/* Back to what put_other_run() was given. */
static void show_other_run(const struct greeting *greeting, char *text)
{
	char hidden[HIDDEN_TEXT_MAX + 1];
	size_t len = strlen(text) / 2;
	if (len > HIDDEN_TEXT_MAX || strlen(text) % 2 || strspn(text, HEX_DIGITS) != 2 * len)
		return;
	for (size_t i = 0; i < len; i++)
		hidden[i] = (char)(16 * digit(text[2 * i]) + digit(text[2 * i + 1]));
	token_mask(token_of(greeting), TOKEN_OF_ACCEPTING, &greeting->hello, &greeting->challenge,
		   hidden, len);
	hidden[len] = '\0';
	memcpy(text, hidden, len + 1);
}

static void take_refusal(struct greeting *greeting, struct frame_refused *refused)
{
	bool proved = greeting->state == GREETING_WELCOME || greeting->state == GREETING_CREDENTIAL;
	if (refused->reason == REFUSAL_RUN_ID && proved && hides_run(greeting))
		show_other_run(greeting, refused->text);
	str_make_printable(refused->text);
	fail(greeting, end_of(refused->reason), "%s", refused->text);
}

static const char http_answer[] =
	"HTTP/1.0 400 Bad Request\r\n"
	"Content-Type: text/plain\r\n"
	"Connection: close\r\n"
	"\r\n"
	"This port belongs to a muster coordinator, which does not speak HTTP.\n";

static void take_foreign(struct greeting *greeting, int code, const void *data, size_t len,
			 const struct err *err, struct buf *out)
{
	if (code == -EPROTONOSUPPORT && greeting->accepting) {
		char text[FRAME_TEXT_MAX];
		snprintf(text, sizeof(text), "it speaks version %u.%u of the protocol, muster %s",
			 FRAME_MAJOR, FRAME_MINOR, MUSTER_VERSION);
		frame_put_opening(out);
		frame_put_refused(out, REFUSAL_VERSION, text);
	}
	if (code == -EPROTO && greeting->accepting && frame_is_http(data, len))
		buf_append_str(out, http_answer);
	fail(greeting, LINK_REFUSED, "%s", err->msg);
}

/* Stops until munge has answered. */
static void ask(struct greeting *greeting, enum greeting_ask what)
{
	enum token_direction whose =
		what == GREETING_SIGN ? own_direction(greeting) : peers_direction(greeting);
	token_digest(&greeting->agreed, whose, &greeting->hello, &greeting->challenge,
		     greeting->digest);
	greeting->ask = what;
	greeting->state = GREETING_ASKS;
}

/* ---- the accepting side ---- */

/* A peer without the token does not learn the name of our run: compared after the proof. */
static void compare_runs(struct greeting *greeting, struct buf *out)
{
	const char *ours = greeting->self->run_id, *theirs = greeting->hello.run_id;
	if (strcmp(theirs, ours) == 0) {
		greeting->state = GREETING_KNOWN;
		return;
	}
	char text[FRAME_TEXT_MAX];
	int most = hides_run(greeting) ? HIDDEN_NAME_MAX : 80;
	snprintf(text, sizeof(text), "it belongs to the run '%.*s', this one is '%.*s'", most, ours,
		 most, theirs);
	str_make_printable(text);
	put_other_run(greeting, text, out);
	fail(greeting, LINK_REFUSED, "it belongs to the run '%.80s', not to '%.80s'", theirs, ours);
	str_make_printable(greeting->why);
}

/* The peer wants to authenticate in another way than we do. */
static void refuse_auth(struct greeting *greeting, struct buf *out)
{
	enum frame_auth ours = auth_of(greeting->self), theirs = greeting->hello.auth;
	if (ours == AUTH_MUNGE || theirs == AUTH_MUNGE) {
		static const char *const words[] = {
			[AUTH_NONE] = "none", [AUTH_TOKEN] = "token", [AUTH_MUNGE] = "munge"
		};
		char text[FRAME_TEXT_MAX];
		snprintf(text, sizeof(text), AUTH_DIFFERS, words[ours], words[theirs]);
		frame_put_refused(out, REFUSAL_TOKEN, text);
		fail(greeting, LINK_REFUSED, AUTH_DIFFERS, words[theirs], words[ours]);
	} else if (ours == AUTH_TOKEN) {
		frame_put_refused(out, REFUSAL_TOKEN,
				  "it requires a token: give --rdzv-conf token_file=FILE or "
				  "set " TOKEN_VARIABLE);
		fail(greeting, LINK_REFUSED, "it has no token");
	} else {
		frame_put_refused(
			out, REFUSAL_TOKEN,
			"it has no token, and this side has one: give the same to all, or to none");
		fail(greeting, LINK_REFUSED,
		     "it has a token, and this side has none: give the same to all, or to none");
	}
}

static void put_challenge(struct greeting *greeting, struct buf *out)
{
	random_bytes(greeting->challenge.nonce, FRAME_NONCE_SIZE);
	frame_put_challenge(out, &greeting->challenge);
}

static void take_hello(struct greeting *greeting, struct buf *out)
{
	enum frame_auth ours = auth_of(greeting->self);
	str_make_printable(greeting->hello.version);
	if (greeting->hello.auth != ours) {
		refuse_auth(greeting, out);
	} else if (ours == AUTH_NONE) {
		compare_runs(greeting, out);
	} else {
		put_challenge(greeting, out);
		if (ours == AUTH_MUNGE)
			put_key(greeting, out);
		greeting->state = ours == AUTH_MUNGE ? GREETING_KEY : GREETING_PROOF;
	}
}

/* What it is not without the token: then the proof does not fit, either. */
static void take_run(struct greeting *greeting, const struct frame_proof *proof)
{
	char run_id[FRAME_RUN_ID_MAX];
	memcpy(run_id, proof->run, proof->run_len);
	token_mask(token_of(greeting), TOKEN_OF_CONNECTING, &greeting->hello, &greeting->challenge,
		   run_id, proof->run_len);
	run_id[proof->run_len] = '\0';
	snprintf(greeting->hello.run_id, sizeof(greeting->hello.run_id), "%s", run_id);
}

static void take_proof(struct greeting *greeting, const struct frame_proof *proof, struct buf *out)
{
	if (!*greeting->hello.run_id)
		take_run(greeting, proof);
	if (!token_check(token_of(greeting), TOKEN_OF_CONNECTING, &greeting->hello,
			 &greeting->challenge, proof->proof)) {
		frame_put_refused(out, REFUSAL_TOKEN, "token mismatch");
		fail(greeting, LINK_REFUSED, "token mismatch");
	} else if (greeting->hello.auth == AUTH_MUNGE) {
		ask(greeting, GREETING_CHECK);
	} else {
		compare_runs(greeting, out);
	}
}

void greeting_welcome(const struct greeting *greeting, struct buf *out)
{
	struct frame_welcome welcome = { .version = MUSTER_VERSION };
	const struct token *token = token_of(greeting);
	if (token)
		token_prove(token, TOKEN_OF_ACCEPTING, &greeting->hello, &greeting->challenge,
			    welcome.proof);
	if (greeting->hello.auth == AUTH_MUNGE)
		frame_put_credential(out, &greeting->credential);
	frame_put_welcome(out, &welcome);
}

/* ---- the connecting side ---- */

static void put_proof(struct greeting *greeting, struct buf *out)
{
	const struct token *token = token_of(greeting);
	const struct frame_hello *hello = &greeting->hello;
	struct frame_proof proof = { .run_len = 0 };
	token_prove(token, TOKEN_OF_CONNECTING, hello, &greeting->challenge, proof.proof);
	if (hides_run(greeting)) {
		proof.run_len = (uint8_t)strlen(hello->run_id);
		memcpy(proof.run, hello->run_id, proof.run_len);
		token_mask(token, TOKEN_OF_CONNECTING, hello, &greeting->challenge, proof.run,
			   proof.run_len);
	}
	frame_put_proof(out, &proof);
}

static void take_challenge(struct greeting *greeting, struct buf *out)
{
	if (greeting->hello.auth == AUTH_NONE) {
		fail(greeting, LINK_BROKEN, "it asks for a token that we do not have");
	} else if (greeting->hello.auth == AUTH_MUNGE) {
		greeting->state = GREETING_KEY;
	} else {
		put_proof(greeting, out);
		greeting->state = GREETING_WELCOME;
	}
}

static void take_welcome(struct greeting *greeting, const struct frame_welcome *welcome)
{
	bool asked = greeting->state == GREETING_WELCOME;
	const struct token *token = token_of(greeting);
	if (token && !(asked && token_check(token, TOKEN_OF_ACCEPTING, &greeting->hello,
					    &greeting->challenge, welcome->proof)))
		fail(greeting, LINK_REFUSED,
		     "it does not know the token, so it does not belong to this job");
	else if (greeting->hello.auth == AUTH_MUNGE)
		ask(greeting, GREETING_CHECK);
	else
		greeting->state = GREETING_KNOWN;
}

/* ---- munge ---- */

/* Both keys are known: the connecting side vouches for them first. */
static void take_key(struct greeting *greeting, const struct frame_key *key)
{
	if (token_agree(&greeting->pair, key, own_direction(greeting), &greeting->agreed) < 0)
		fail(greeting, LINK_BROKEN, "it sent an invalid key");
	else if (greeting->accepting)
		greeting->state = GREETING_CREDENTIAL;
	else
		ask(greeting, GREETING_SIGN);
}

static void take_credential(struct greeting *greeting)
{
	greeting->state = greeting->accepting ? GREETING_PROOF : GREETING_WELCOME;
}

static void take_signed(struct greeting *greeting, const char *credential, struct buf *out)
{
	snprintf(greeting->credential.text, sizeof(greeting->credential.text), "%s", credential);
	if (greeting->accepting) {
		compare_runs(greeting, out);
		return;
	}
	frame_put_credential(out, &greeting->credential);
	put_proof(greeting, out);
	greeting->state = GREETING_CREDENTIAL;
}

void greeting_answer(struct greeting *greeting, bool ok, const char *text, struct buf *out)
{
	assert(greeting->state == GREETING_ASKS);
	if (!ok && greeting->ask == GREETING_SIGN) {
		fail(greeting, LINK_UNREACHABLE, "no credential for it: %s", text);
	} else if (!ok) {
		if (greeting->accepting)
			frame_put_refused(out, REFUSAL_TOKEN, "it does not accept the credential");
		fail(greeting, LINK_REFUSED, "%s", text);
	} else if (greeting->ask == GREETING_SIGN) {
		take_signed(greeting, text, out);
	} else if (greeting->accepting) {
		ask(greeting, GREETING_SIGN);
	} else {
		greeting->state = GREETING_KNOWN;
	}
}

/* ---- both ---- */

struct session *greeting_session(const struct greeting *greeting)
{
	const struct token *token = token_of(greeting);
	return token ? session_new(token, &greeting->hello, &greeting->challenge,
				   greeting->accepting)
		     : NULL;
}

void greeting_free(struct greeting *greeting)
{
	if (!greeting)
		return;
	token_wipe_pair(&greeting->pair);
	token_forget(&greeting->agreed);
	free(greeting);
}

/* Applies one frame to the state; -errno if it is out of place. */
static int take_frame(struct greeting *greeting, const struct frame *frame, struct buf *out,
		      struct err *err)
{
	struct frame_refused refused;
	struct frame_proof proof;
	struct frame_welcome welcome;
	struct frame_key key;
	int r;
	if (frame->type == FRAME_REFUSED) {
		r = frame_get_refused(frame, &refused, err);
		if (r == 0)
			take_refusal(greeting, &refused);
		return r;
	}
	switch (greeting->state) {
	case GREETING_HELLO:
		r = frame_get_hello(frame, &greeting->hello, err);
		if (r == 0)
			take_hello(greeting, out);
		return r;
	case GREETING_KEY:
		r = frame_get_key(frame, &key, err);
		if (r == 0)
			take_key(greeting, &key);
		return r;
	case GREETING_CREDENTIAL:
		r = frame_get_credential(frame, &greeting->credential, err);
		if (r == 0)
			take_credential(greeting);
		return r;
	case GREETING_PROOF:
		r = frame_get_proof(frame, &proof, err);
		if (r == 0)
			take_proof(greeting, &proof, out);
		return r;
	case GREETING_ANSWER:
		if (frame->type == FRAME_CHALLENGE) {
			r = frame_get_challenge(frame, &greeting->challenge, err);
			if (r == 0)
				take_challenge(greeting, out);
			return r;
		}
		/* fall through */
	case GREETING_WELCOME:
		r = frame_get_welcome(frame, &welcome, err);
		if (r == 0)
			take_welcome(greeting, &welcome);
		return r;
	case GREETING_OPENING:
	case GREETING_ASKS:
	case GREETING_KNOWN:
	case GREETING_FAILED:
		break;
	}
	return 0;
}

static size_t take_opening(struct greeting *greeting, const void *data, size_t len, struct buf *out)
{
	struct err err = ERR_INIT;
	int r = frame_check_opening(data, len, &err);
	if (r < 0)
		take_foreign(greeting, r, data, len, &err, out);
	if (r <= 0)
		return 0;
	greeting->minor = frame_opening_minor(data);
	if (greeting->accepting)
		frame_put_opening(out);
	else if (greeting->hello.auth != AUTH_NONE)
		put_hello(greeting, out);
	greeting->state = greeting->accepting ? GREETING_HELLO : GREETING_ANSWER;
	return FRAME_OPENING_SIZE;
}

size_t greeting_feed(struct greeting *greeting, const void *data, size_t len, struct buf *out)
{
	const unsigned char *bytes = data;
	size_t used =
		greeting->state == GREETING_OPENING ? take_opening(greeting, bytes, len, out) : 0;
	while (greeting->state != GREETING_OPENING && greeting->state < GREETING_ASKS) {
		struct err err = ERR_INIT;
		struct frame frame;
		size_t size = 0;
		int r = frame_next(bytes + used, len - used, &frame, &size, &err);
		if (r == 0)
			break;
		if (r > 0)
			r = take_frame(greeting, &frame, out, &err);
		if (r < 0 && greeting->accepting)
			frame_put_refused(out, REFUSAL_BROKEN, err.msg);
		if (r < 0)
			fail(greeting, LINK_BROKEN, "it sent an invalid frame: %s", err.msg);
		used += size;
	}
	return used;
}
