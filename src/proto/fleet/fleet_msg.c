#include "proto/fleet/fleet_msg.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "proto/pack.h"

void fleet_start_done(struct fleet_start *start)
{
	strv_done(&start->place);
	strv_done(&start->options);
	strv_done(&start->command);
	strv_done(&start->env);
}

/* ---- writing ---- */

static void put_u32(struct buf *out, uint32_t value)
{
	unsigned char bytes[4];
	struct pack p = pack_writer(bytes, sizeof(bytes));
	pack_u32(&p, &value);
	buf_append(out, bytes, sizeof(bytes));
}

static void put_texts(struct buf *out, char *const *texts)
{
	uint32_t count = 0;
	while (texts[count])
		count++;
	put_u32(out, count);
	for (uint32_t i = 0; i < count; i++)
		buf_append(out, texts[i], strlen(texts[i]) + 1);
}

void fleet_put(struct buf *out, enum fleet_type type, uint32_t host, const void *body, size_t len)
{
	assert(len <= FLEET_BODY_MAX);
	put_u32(out, (uint32_t)len);
	buf_append_char(out, (char)type);
	put_u32(out, host);
	buf_append(out, body, len);
}

static void put_buf(struct buf *out, enum fleet_type type, uint32_t host, const struct buf *body)
{
	fleet_put(out, type, host, buf_len(body) ? buf_data(body) : (const void *)"",
		  buf_len(body));
}

void fleet_put_number(struct buf *out, enum fleet_type type, uint32_t host, uint32_t number)
{
	AUTO(buf_done) struct buf body = BUF_INIT;
	put_u32(&body, number);
	put_buf(out, type, host, &body);
}

void fleet_put_texts(struct buf *out, enum fleet_type type, uint32_t host, uint32_t number,
		     char *const *texts)
{
	AUTO(buf_done) struct buf body = BUF_INIT;
	put_u32(&body, number);
	put_texts(&body, texts);
	put_buf(out, type, host, &body);
}

void fleet_put_agent(struct buf *out, uint32_t host, const struct exit_status *status)
{
	AUTO(buf_done) struct buf body = BUF_INIT;
	put_u32(&body, (uint32_t)status->kind);
	put_u32(&body, (uint32_t)status->value);
	put_buf(out, FLEET_MSG_AGENT, host, &body);
}

int fleet_put_start(struct buf *out, const struct fleet_start *start, struct err *err)
{
	AUTO(buf_done) struct buf body = BUF_INIT;
	const struct strv *const lists[] = { &start->place, &start->options, &start->command,
					     &start->env };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		put_texts(&body, strv_argv(lists[i]));
	if (buf_len(&body) > FLEET_BODY_MAX)
		return err_set(err, E2BIG,
			       "command and environment are %zu bytes; other hosts get %zu at most",
			       buf_len(&body), FLEET_BODY_MAX);
	put_buf(out, FLEET_MSG_START, FLEET_ALL, &body);
	return 0;
}

/* ---- reading ---- */

int fleet_next(const struct buf *in, struct fleet_msg *ret_msg, size_t *ret_size)
{
	if (buf_len(in) < FLEET_HEAD_SIZE)
		return 0;
	struct pack p = pack_reader(buf_data(in), FLEET_HEAD_SIZE);
	uint32_t len = 0, host = 0;
	uint8_t type = 0;
	pack_u32(&p, &len);
	pack_u8(&p, &type);
	pack_u32(&p, &host);
	if (len > FLEET_BODY_MAX || type >= FLEET_TYPE_COUNT)
		return -EPROTO;
	if (buf_len(in) - FLEET_HEAD_SIZE < len)
		return 0;
	*ret_msg = (struct fleet_msg){ .type = (enum fleet_type)type,
				       .host = host,
				       .body = buf_data(in) + FLEET_HEAD_SIZE,
				       .len = len };
	*ret_size = FLEET_HEAD_SIZE + len;
	return 1;
}

static void read_texts(struct pack *p, struct strv *texts)
{
	uint32_t count = 0;
	pack_u32(p, &count);
	pack_require(p, count <= FLEET_TEXTS_MAX);
	for (uint32_t i = 0; i < count && !p->bad; i++) {
		const unsigned char *nul = memchr(p->at, '\0', (size_t)(p->end - p->at));
		pack_require(p, nul != NULL);
		if (!nul)
			return;
		strv_add(texts, (const char *)p->at);
		p->at = (unsigned char *)nul + 1;
	}
}

static int result(const struct pack *p)
{
	return p->bad || p->at != p->end ? -EPROTO : 0;
}

int fleet_number(const struct fleet_msg *msg, uint32_t *ret_number)
{
	struct pack p = pack_reader(msg->body, msg->len);
	pack_u32(&p, ret_number);
	return result(&p);
}

int fleet_texts(const struct fleet_msg *msg, uint32_t *ret_number, struct strv *ret_texts)
{
	struct pack p = pack_reader(msg->body, msg->len);
	pack_u32(&p, ret_number);
	read_texts(&p, ret_texts);
	return result(&p);
}

int fleet_agent(const struct fleet_msg *msg, struct exit_status *ret_status)
{
	struct pack p = pack_reader(msg->body, msg->len);
	uint32_t kind = 0, value = 0;
	pack_u32(&p, &kind);
	pack_u32(&p, &value);
	pack_require(&p, kind <= EXIT_SIGNAL && value <= UINT8_MAX);
	if (result(&p) == 0)
		*ret_status =
			(struct exit_status){ .kind = (enum exit_kind)kind, .value = (int)value };
	return result(&p);
}

int fleet_start_of(const struct fleet_msg *msg, struct fleet_start *ret_start)
{
	struct pack p = pack_reader(msg->body, msg->len);
	struct strv *const lists[] = { &ret_start->place, &ret_start->options, &ret_start->command,
				       &ret_start->env };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		read_texts(&p, lists[i]);
	/* A run is not named, so that relays of earlier versions understand it. */
	if (ret_start->place.count == 2)
		strv_add(&ret_start->place, "run");
	pack_require(&p, ret_start->place.count == 3);
	if (!p.bad && str_eq(ret_start->place.items[2], "run"))
		pack_require(&p, ret_start->command.count > 0);
	else if (!p.bad)
		pack_require(&p, str_eq(ret_start->place.items[2], "batch") ||
					 str_eq(ret_start->place.items[2], "doctor"));
	return result(&p);
}
