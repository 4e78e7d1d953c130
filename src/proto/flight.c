#include "proto/flight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/json_in.h"
#include "proto/json_value.h"
#include "proto/pickle.h"

struct reading {
	struct json_in in;
	struct record *record;
	struct buf name, desc, text; /* of the entry being read */
	struct record_entry entry;
};

static void reading_done(struct reading *reading)
{
	buf_done(&reading->name);
	buf_done(&reading->desc);
	buf_done(&reading->text);
	record_entry_done(&reading->entry);
}

/* ---- values of an entry ---- */

static int read_u64(struct reading *r, size_t offset)
{
	int64_t value;
	if (json_in_peek(&r->in) == JSON_NULL)
		return json_in_null(&r->in);
	int error = json_in_int(&r->in, &value);
	if (error < 0 || value < 0)
		return -EINVAL;
	*(uint64_t *)((char *)&r->entry + offset) = (uint64_t)value;
	return 0;
}

static int read_bool(struct reading *r, size_t offset)
{
	return json_in_bool(&r->in, (bool *)((char *)&r->entry + offset));
}

/* Sizes and types are compared and shown, never understood: they stay as they are written. */
static int read_raw(struct reading *r, size_t offset)
{
	struct json_value value;
	char **text = (char **)((char *)&r->entry + offset);
	if (json_in_value(&r->in, &value) < 0)
		return -EINVAL;
	free(*text);
	*text = value.kind == JSON_STRING
			? json_value_text(value) /* one that was cut, see write_raw() */
			: mem_strndup(value.text, MIN(value.len, (size_t)RECORD_TEXT_MAX));
	str_make_printable(*text);
	return 0;
}

/* "gloo:all_reduce": the library's name is the same for all. */
static int read_op(struct reading *r, size_t offset UNUSED)
{
	if (json_in_string(&r->in, &r->text) < 0)
		return -EINVAL;
	const char *text = buf_str(&r->text), *colon = strrchr(text, ':');
	free(r->entry.op);
	r->entry.op = mem_strdup(colon ? colon + 1 : text);
	str_make_printable(r->entry.op);
	return 0;
}

static int read_state(struct reading *r, size_t offset UNUSED)
{
	if (json_in_string(&r->in, &r->text) < 0)
		return -EINVAL;
	r->entry.complete |= str_eq(buf_str(&r->text), "completed");
	return 0;
}

static int read_retired(struct reading *r, size_t offset UNUSED)
{
	bool retired;
	if (json_in_bool(&r->in, &retired) < 0)
		return -EINVAL;
	r->entry.complete |= retired;
	return 0;
}

/* ["0", "default_pg"] */
static int read_group(struct reading *r, size_t offset UNUSED)
{
	int error = json_in_enter(&r->in, '[');
	for (int i = 0; error >= 0 && (error = json_in_element(&r->in)) > 0; i++)
		error = i > 1 ? -EINVAL : json_in_string(&r->in, i == 0 ? &r->name : &r->desc);
	return error;
}

static const struct {
	const char *key;
	int (*read)(struct reading *reading, size_t offset);
	size_t offset; /* in the entry */
} keys[] = {
	{ "collective_seq_id", read_u64, offsetof(struct record_entry, seq) },
	{ "time_created_ns", read_u64, offsetof(struct record_entry, created_ns) },
	{ "input_sizes", read_raw, offsetof(struct record_entry, shape.in_sizes) },
	{ "output_sizes", read_raw, offsetof(struct record_entry, shape.out_sizes) },
	{ "input_dtypes", read_raw, offsetof(struct record_entry, shape.in_types) },
	{ "output_dtypes", read_raw, offsetof(struct record_entry, shape.out_types) },
	{ "is_p2p", read_bool, offsetof(struct record_entry, p2p) },
	{ "noted", read_bool, offsetof(struct record_entry, noted) },
	{ "profiling_name", read_op, 0 },
	{ "process_group", read_group, 0 },
	{ "retired", read_retired, 0 },
	{ "state", read_state, 0 },
};

static int read_member(struct reading *r, const char *key, uint64_t *p2p_seq)
{
	int64_t value;
	if (str_eq(key, "p2p_seq_id")) { /* whether it counts is known at the end */
		int error = json_in_int(&r->in, &value);
		*p2p_seq = error < 0 || value < 0 ? 0 : (uint64_t)value;
		return error;
	}
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (str_eq(key, keys[i].key))
			return keys[i].read(r, keys[i].offset);
	return json_in_skip(&r->in);
}

static int read_entry(struct reading *r, struct buf *key)
{
	uint64_t p2p_seq = 0;
	record_entry_done(&r->entry);
	buf_clear(&r->name);
	buf_clear(&r->desc);
	int error = json_in_enter(&r->in, '{');
	while (error >= 0 && (error = json_in_member(&r->in, key)) > 0)
		error = read_member(r, buf_str(key), &p2p_seq);
	if (error < 0)
		return error;
	if (r->entry.p2p)
		r->entry.seq = p2p_seq;
	struct record_group *group = record_group(r->record, buf_str(&r->name));
	if (!group)
		return -EINVAL;
	if (buf_len(&r->desc) && !str_eq(buf_str(&r->desc), "undefined"))
		record_set_desc(group, buf_str(&r->desc));
	record_add(group, &r->entry);
	return 0;
}

static int read_entries(struct reading *r)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	int error = json_in_enter(&r->in, '[');
	while (error >= 0 && (error = json_in_element(&r->in)) > 0)
		error = read_entry(r, &key);
	return error;
}

/* ---- members of groups ---- */

static int read_ranks(struct json_in *in, struct record_group *group)
{
	uint32_t *ranks = NULL;
	size_t count = 0, cap = 0;
	int64_t rank;
	int error = json_in_enter(in, '[');
	while (error >= 0 && (error = json_in_element(in)) > 0) {
		error = json_in_int(in, &rank);
		if (error < 0 || rank < 0 || rank >= RECORD_RANKS_MAX ||
		    count >= RECORD_RANKS_MAX) {
			error = -EINVAL;
			break;
		}
		ARRAY_RESERVE(ranks, count, cap);
		ranks[count++] = (uint32_t)rank;
	}
	if (error == 0)
		record_set_ranks(group, ranks, count);
	free(ranks);
	return error;
}

/* [5, 1000, 1, 30]: the rank came to collective 5 at 1000 and to 6 at 1030. */
static int read_times(struct json_in *in, struct record_group *group)
{
	struct record_time time = { 0, 0 };
	int64_t value;
	int error = json_in_enter(in, '[');
	for (size_t i = 0; error >= 0 && (error = json_in_element(in)) > 0; i++) {
		error = json_in_int(in, &value);
		if (error < 0 || i >= 2 * (size_t)RECORD_TIMES_MAX ||
		    (i % 2 == 0 && (value < 0 || value > INT64_MAX - (int64_t)time.seq)))
			return -EINVAL;
		if (i % 2 == 0)
			time.seq += (uint64_t)value;
		else
			time.ns += (uint64_t)value;
		if (i % 2 == 1)
			record_add_time(group, &time);
	}
	return error;
}

/* {"desc": "dp", "ranks": [0, 1]} */
static int read_group_info(struct json_in *in, struct record_group *group)
{
	AUTO(buf_done) struct buf key = BUF_INIT, text = BUF_INIT;
	int error = json_in_enter(in, '{');
	while (error >= 0 && (error = json_in_member(in, &key)) > 0) {
		if (str_eq(buf_str(&key), "ranks")) {
			error = read_ranks(in, group);
		} else if (str_eq(buf_str(&key), "times")) {
			error = read_times(in, group);
		} else if (str_eq(buf_str(&key), "desc")) {
			error = json_in_string(in, &text);
			if (error >= 0)
				record_set_desc(group, buf_str(&text));
		} else {
			error = json_in_skip(in);
		}
	}
	return error;
}

static int read_groups(struct json_in *in, struct record *record)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	int error = json_in_enter(in, '{');
	while (error >= 0 && (error = json_in_member(in, &key)) > 0) {
		struct record_group *group = record_group(record, buf_str(&key));
		error = group ? read_group_info(in, group) : -EINVAL;
	}
	return error;
}

/* What PyTorch itself says of groups: {"0": {"desc": "default_pg", "ranks": "[0, 1]"}, ...}; with
 * gloo that is one group without a name or members. */
static int read_config(struct json_in *in, struct record *record)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	struct json_value info;
	int error = json_in_enter(in, '{');
	while (error >= 0 && (error = json_in_member(in, &key)) > 0) {
		error = json_in_value(in, &info);
		AUTO_FREE char *ranks =
			error < 0 ? NULL : json_value_text(json_value_get(info, "ranks"));
		if (!ranks || str_eq(ranks, "[]"))
			continue;
		AUTO_FREE char *desc = json_value_text(json_value_get(info, "desc"));
		struct record_group *group = record_group(record, buf_str(&key));
		struct json_in list;
		json_in_init(&list, ranks, strlen(ranks));
		error = group ? read_ranks(&list, group) : -EINVAL;
		if (error >= 0 && desc && *desc && !str_eq(desc, "undefined"))
			record_set_desc(group, desc);
	}
	return error;
}

/* ---- whole texts ---- */

static int read_text(struct reading *r)
{
	AUTO(buf_done) struct buf name = BUF_INIT;
	int error = json_in_enter(&r->in, '{');
	while (error >= 0 && (error = json_in_member(&r->in, &name)) > 0) {
		if (str_eq(buf_str(&name), "entries"))
			error = read_entries(r);
		else if (str_eq(buf_str(&name), "groups"))
			error = read_groups(&r->in, r->record);
		else if (str_eq(buf_str(&name), "pg_config"))
			error = read_config(&r->in, r->record);
		else
			error = json_in_skip(&r->in);
	}
	return error < 0 ? error : json_in_end(&r->in);
}

static int bad_text(const struct json_in *in, const char *what, struct err *err)
{
	return err_set(err, EPROTO, "not %s: byte %zu", what, json_in_column(in));
}

int flight_read_more(const char *text, size_t len, struct record *record, struct err *err)
{
	struct reading reading = { .record = record, .name = BUF_INIT, .desc = BUF_INIT };
	reading.text = BUF_INIT;
	json_in_init(&reading.in, text, len);
	int r = read_text(&reading);
	if (r < 0)
		r = bad_text(&reading.in, "a flight recorder's record", err);
	reading_done(&reading);
	return r;
}

int flight_read_json(const char *text, size_t len, struct record *ret_record, struct err *err)
{
	record_done(ret_record);
	int r = flight_read_more(text, len, ret_record, err);
	if (r < 0)
		record_done(ret_record);
	return r;
}

int flight_read_pickle(const void *data, size_t len, struct record *ret_record, struct err *err)
{
	AUTO(buf_done) struct buf json = BUF_INIT;
	record_done(ret_record);
	int r = pickle_to_json(data, len, &json, err);
	return r < 0 ? r : flight_read_json(buf_str(&json), buf_len(&json), ret_record, err);
}

int flight_read_groups(const char *text, size_t len, struct record *record, struct err *err)
{
	struct json_in in;
	json_in_init(&in, text, len);
	int r = read_groups(&in, record);
	if (r == 0)
		r = json_in_end(&in);
	return r < 0 ? bad_text(&in, "a list of process groups", err) : 0;
}

/* ---- writing ---- */

static void write_raw(struct json_out *out, const char *key, const char *json)
{
	struct json_value value;
	/* A text that was cut is not JSON. */
	if (json_value_parse(json, strlen(json), &value) == 0 && value.kind != JSON_STRING)
		json_out_raw(out, key, json, strlen(json));
	else if (*json)
		json_out_text(out, key, json);
}

static void write_entry(struct json_out *out, const struct record_group *group,
			const struct record_entry *entry)
{
	json_out_open(out, NULL, '{');
	json_out_open(out, "process_group", '[');
	json_out_text(out, NULL, group->name);
	json_out_text(out, NULL, group->desc);
	json_out_close(out, ']');
	json_out_text(out, "profiling_name", entry->op);
	json_out_int(out, entry->p2p ? "p2p_seq_id" : "collective_seq_id", (int64_t)entry->seq);
	json_out_bool(out, "is_p2p", entry->p2p);
	if (entry->noted)
		json_out_bool(out, "noted", true);
	json_out_bool(out, "retired", entry->complete);
	json_out_int(out, "time_created_ns", (int64_t)entry->created_ns);
	write_raw(out, "input_sizes", entry->shape.in_sizes);
	write_raw(out, "output_sizes", entry->shape.out_sizes);
	write_raw(out, "input_dtypes", entry->shape.in_types);
	write_raw(out, "output_dtypes", entry->shape.out_types);
	json_out_close(out, '}');
}

static void write_ranks(struct json_out *out, const struct record_group *group)
{
	json_out_open(out, "ranks", '[');
	for (size_t i = 0; i < group->rank_count; i++)
		json_out_int(out, NULL, group->ranks[i]);
	json_out_close(out, ']');
}

/* Each by what it is more than the one before. */
static void write_times(struct json_out *out, const struct record_group *group)
{
	size_t count;
	const struct record_time *times = record_times(group, &count);
	struct record_time before = { 0, 0 };
	json_out_open(out, "times", '[');
	for (size_t i = 0; i < count; i++) {
		json_out_int(out, NULL, (int64_t)(times[i].seq - before.seq));
		json_out_int(out, NULL, (int64_t)(times[i].ns - before.ns));
		before = times[i];
	}
	json_out_close(out, ']');
}

void flight_write(struct json_out *out, const char *key, const struct record *record)
{
	json_out_open(out, key, '{');
	/* Groups first: a reader meets them in this order, also those without entries. */
	json_out_open(out, "groups", '{');
	for (size_t i = 0; i < record->count; i++) {
		json_out_open(out, record->groups[i].name, '{');
		json_out_text(out, "desc", record->groups[i].desc);
		write_ranks(out, &record->groups[i]);
		write_times(out, &record->groups[i]);
		json_out_close(out, '}');
	}
	json_out_close(out, '}');
	json_out_open(out, "entries", '[');
	for (size_t i = 0; i < record->count; i++) {
		const struct record_group *group = &record->groups[i];
		for (size_t j = 0; j < group->done_count; j++)
			write_entry(out, group, &group->done[j]);
		for (size_t j = 0; j < group->pair_count; j++)
			write_entry(out, group, &group->pairs[j]);
		for (size_t j = 0; j < group->open_count; j++)
			write_entry(out, group, &group->open[j]);
	}
	json_out_close(out, ']');
	json_out_close(out, '}');
}
