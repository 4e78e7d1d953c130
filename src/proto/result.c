#include "proto/result.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/mem.h"
#include "base/str.h"
#include "proto/json_in.h"
#include "proto/json_out.h"

void result_done(struct result *result)
{
	free(result->id);
	free(result->shell);
	free(result->cwd);
	free(result->stdin_path);
	free(result->group);
	free(result->source);
	free(result->cores);
	free(result->node);
	free(result->unit);
	free(result->count_source);
	free(result->env_hash);
	free(result->out.path);
	free(result->err_out.path);
	free(result->tail);
	strv_done(&result->argv);
	strv_done(&result->args);
	strv_done(&result->arg_names);
	strv_done(&result->env);
	strv_done(&result->labels);
	strv_done(&result->suspect);
	strv_done(&result->missing);
	*result = RESULT_INIT;
}

void result_set(struct result *result, enum result_value value, int64_t number)
{
	result->has[value] = true;
	result->value[value] = number;
}

void result_miss(struct result *result, const char *field, const char *why)
{
	env_set(&result->missing, field, why);
}

/* A result file has the same keys for its reader and its writer: each is a row of a table, and a
 * kind says how its rows are read and written. */
struct field;

struct kind {
	int (*read)(struct json_in *in, const struct field *field, void *at);
	void (*write)(struct json_out *out, const struct field *field, const void *at);
};

struct field {
	const char *key;
	const struct kind *kind;
	size_t offset; /* of `at` in the struct that the table is about */
	size_t arg;    /* what the kind says */
};

/* Texts on the heap, absent if NULL or empty. */

static int read_text(struct json_in *in, const struct field *field UNUSED, void *at)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	char **ret_text = at;
	int r = json_in_string(in, &text);
	if (r < 0)
		return r;
	free(*ret_text);
	*ret_text = buf_take_str(&text);
	return 0;
}

static void write_text(struct json_out *out, const struct field *field, const void *at)
{
	json_out_text_if(out, field->key, *(char *const *)at);
}

static const struct kind kind_text = { read_text, write_text };

/* A text that is always there. */

static void write_id(struct json_out *out, const struct field *field, const void *at)
{
	const char *id = *(char *const *)at;
	json_out_text(out, field->key, id ? id : "");
}

static const struct kind kind_id = { read_text, write_id };

/* Texts in place, of at most `arg` bytes with the NUL. */

static int read_short(struct json_in *in, char *ret_text, size_t size)
{
	AUTO(buf_done) struct buf read = BUF_INIT;
	int r = json_in_string(in, &read);
	if (r < 0 || buf_len(&read) >= size)
		return -EINVAL;
	strcpy(ret_text, buf_str(&read));
	return 0;
}

static int read_in_place(struct json_in *in, const struct field *field, void *at)
{
	return read_short(in, at, field->arg);
}

static void write_in_place(struct json_out *out, const struct field *field, const void *at)
{
	json_out_text_if(out, field->key, at);
}

static const struct kind kind_in_place = { read_in_place, write_in_place };

/* Numbers from 0 on, absent below `arg`. */

static int read_number(struct json_in *in, const struct field *field UNUSED, void *at)
{
	int64_t value;
	int r = json_in_int(in, &value);
	if (r < 0 || value < 0 || value > INT32_MAX)
		return -EINVAL;
	*(int *)at = (int)value;
	return 0;
}

static void write_number(struct json_out *out, const struct field *field, const void *at)
{
	int value = *(const int *)at;
	if (value >= (int)field->arg)
		json_out_int(out, field->key, value);
}

static const struct kind kind_number = { read_number, write_number };

/* Flags, absent if false. */

static int read_flag(struct json_in *in, const struct field *field UNUSED, void *at)
{
	return json_in_bool(in, at);
}

static void write_flag(struct json_out *out, const struct field *field, const void *at)
{
	if (*(const bool *)at)
		json_out_bool(out, field->key, true);
}

static const struct kind kind_flag = { read_flag, write_flag };

/* Lists of texts, absent if empty. */

static int read_list(struct json_in *in, const struct field *field, void *at)
{
	strv_done(at);
	int r = json_in_enter(in, '[');
	while (r >= 0 && (r = json_in_element(in)) > 0) {
		char *item = NULL;
		r = read_text(in, field, &item);
		if (r >= 0)
			strv_take(at, item);
	}
	return r;
}

static void write_list(struct json_out *out, const struct field *field, const void *at)
{
	const struct strv *items = at;
	if (items->count > 0)
		json_out_list(out, field->key, items);
}

static const struct kind kind_list = { read_list, write_list };

/* Lists of "NAME=value" and "NAME", as {"NAME":"value"} and {"NAME":null}; absent if empty. */

static int read_map(struct json_in *in, const struct field *field UNUSED, void *at)
{
	AUTO(buf_done) struct buf name = BUF_INIT, value = BUF_INIT;
	strv_done(at);
	int r = json_in_enter(in, '{');
	while (r >= 0 && (r = json_in_member(in, &name)) > 0) {
		if (json_in_peek(in) == JSON_NULL) {
			r = json_in_null(in);
			strv_add(at, buf_str(&name));
			continue;
		}
		r = json_in_string(in, &value);
		if (r >= 0)
			strv_take(at, mem_printf("%s=%s", buf_str(&name), buf_str(&value)));
	}
	return r;
}

static void write_map(struct json_out *out, const struct field *field, const void *at)
{
	const struct strv *items = at;
	if (items->count > 0)
		json_out_map(out, field->key, items);
}

static const struct kind kind_map = { read_map, write_map };

/* What ran: a line for the shell, or words. */

static int read_command(struct json_in *in, const struct field *field, void *at)
{
	struct result *result = at;
	if (json_in_peek(in) == JSON_ARRAY)
		return read_list(in, field, &result->argv);
	return read_text(in, field, &result->shell);
}

static void write_command(struct json_out *out, const struct field *field, const void *at)
{
	const struct result *result = at;
	if (result->shell)
		json_out_text(out, field->key, result->shell);
	else
		json_out_list(out, field->key, &result->argv);
}

static const struct kind kind_command = { read_command, write_command };

/* How it ended. */

static int read_reason(struct json_in *in, const struct field *field UNUSED, void *at)
{
	char name[32];
	int r = read_short(in, name, sizeof(name));
	if (r < 0 || (r = reason_parse(name)) < 0)
		return r;
	*(enum reason *)at = (enum reason)r;
	return 0;
}

static void write_reason(struct json_out *out, const struct field *field, const void *at)
{
	json_out_text(out, field->key, reason_name(*(const enum reason *)at));
}

static const struct kind kind_reason = { read_reason, write_reason };

static int read_exit(struct json_in *in, const struct field *field, void *at)
{
	struct exit_status *status = at;
	status->kind = EXIT_CODE;
	return read_number(in, field, &status->value);
}

static void write_exit(struct json_out *out, const struct field *field, const void *at)
{
	const struct exit_status *status = at;
	if (status->kind == EXIT_CODE)
		json_out_int(out, field->key, status->value);
}

static const struct kind kind_exit = { read_exit, write_exit };

static int read_signal(struct json_in *in, const struct field *field, void *at)
{
	struct exit_status *status = at;
	char name[32];
	status->kind = EXIT_SIGNAL;
	if (json_in_peek(in) == JSON_NUMBER)
		return read_number(in, field, &status->value);
	int r = read_short(in, name, sizeof(name));
	if (r < 0 || (r = str_to_signal(name)) < 0)
		return r;
	status->value = r;
	return 0;
}

static void write_signal(struct json_out *out, const struct field *field, const void *at)
{
	const struct exit_status *status = at;
	if (status->kind != EXIT_SIGNAL)
		return;
	const char *name = str_signal_name(status->value);
	if (name)
		json_out_text(out, field->key, name);
	else
		json_out_int(out, field->key, status->value);
}

static const struct kind kind_signal = { read_signal, write_signal };

/* Measured numbers; `arg` is the enum result_value. */

static int read_value(struct json_in *in, const struct field *field, void *at)
{
	struct result *result = at;
	int r = json_in_int(in, &result->value[field->arg]);
	result->has[field->arg] = r >= 0;
	return r;
}

static void write_value(struct json_out *out, const struct field *field, const void *at)
{
	const struct result *result = at;
	if (result->has[field->arg])
		json_out_int(out, field->key, result->value[field->arg]);
}

static const struct kind kind_value = { read_value, write_value };

/* The number that a program reported; one that JSON cannot write was not reported. */

static int read_reported(struct json_in *in, const struct field *field UNUSED, void *at)
{
	struct result *result = at;
	int r = json_in_double(in, &result->number);
	result->has_number = r >= 0 && isfinite(result->number);
	return r;
}

static void write_reported(struct json_out *out, const struct field *field, const void *at)
{
	const struct result *result = at;
	if (result->has_number)
		json_out_real(out, field->key, result->number);
}

static const struct kind kind_reported = { read_reported, write_reported };

static int read_bytes(struct json_in *in, const struct field *field UNUSED, void *at)
{
	int64_t bytes;
	int r = json_in_int(in, &bytes);
	if (r >= 0)
		*(uint64_t *)at = (uint64_t)MAX(bytes, 0);
	return r;
}

static void write_bytes(struct json_out *out, const struct field *field, const void *at)
{
	json_out_int(out, field->key, (int64_t) * (const uint64_t *)at);
}

static const struct kind kind_bytes = { read_bytes, write_bytes };

/* Tables. */

struct fields {
	const struct field *rows;
	size_t count;
};

#define FIELDS(rows) ((struct fields){ (rows), ARRAY_LEN(rows) })

/* The keys of a line mostly come in the order of the table: the search begins at *next. */
static int read_field(struct json_in *in, struct fields fields, size_t *next, const char *key,
		      void *base)
{
	for (size_t i = 0; i < fields.count; i++) {
		size_t row = (*next + i) % fields.count;
		const struct field *field = &fields.rows[row];
		if (!str_eq(field->key, key))
			continue;
		*next = row + 1;
		return field->kind->read(in, field, (char *)base + field->offset);
	}
	return json_in_skip(in);
}

static int read_object(struct json_in *in, struct fields fields, void *base)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	size_t next = 0;
	int r = json_in_enter(in, '{');
	while (r >= 0 && (r = json_in_member(in, &key)) > 0)
		r = read_field(in, fields, &next, buf_str(&key), base);
	return r;
}

static void write_object(struct json_out *out, const char *key, struct fields fields,
			 const void *base)
{
	json_out_open(out, key, '{');
	for (size_t i = 0; i < fields.count; i++) {
		const struct field *field = &fields.rows[i];
		field->kind->write(out, field, (const char *)base + field->offset);
	}
	json_out_close(out, '}');
}

#define IN(type, member) offsetof(struct type, member)
#define IN_PLACE(type, member) \
	&kind_in_place, IN(type, member), sizeof(((struct type *)NULL)->member)

static const struct field output_fields[] = {
	{ "bytes", &kind_bytes, IN(result_output, bytes) },
	{ "path", &kind_text, IN(result_output, path) },
	{ "sha256", IN_PLACE(result_output, sha256) },
};

static int read_output(struct json_in *in, const struct field *field UNUSED, void *at)
{
	struct result_output *output = at;
	output->present = true;
	return read_object(in, FIELDS(output_fields), output);
}

static void write_output(struct json_out *out, const struct field *field, const void *at)
{
	const struct result_output *output = at;
	if (output->present)
		write_object(out, field->key, FIELDS(output_fields), output);
}

static const struct kind kind_output = { read_output, write_output };

static const struct field count_fields[] = {
	{ "instructions", &kind_value, .arg = RESULT_INSTRUCTIONS },
	{ "source", &kind_text, IN(result, count_source) },
	{ "env_hash", &kind_text, IN(result, env_hash) },
};

static int read_counts(struct json_in *in, const struct field *field UNUSED, void *at)
{
	return read_object(in, FIELDS(count_fields), at);
}

static void write_counts(struct json_out *out, const struct field *field, const void *at)
{
	const struct result *result = at;
	if (result->has[RESULT_INSTRUCTIONS])
		write_object(out, field->key, FIELDS(count_fields), result);
}

static const struct kind kind_counts = { read_counts, write_counts };

/* In the order in which a line has them. */
static const struct field result_fields[] = {
	{ "id", &kind_id, IN(result, id) },
	{ "hash", IN_PLACE(result, hash) },
	{ "named", &kind_flag, IN(result, named) },
	{ "cmd", &kind_command },
	{ "args", &kind_list, IN(result, args) },
	{ "arg_names", &kind_list, IN(result, arg_names) },
	{ "env", &kind_map, IN(result, env) },
	{ "cwd", &kind_text, IN(result, cwd) },
	{ "stdin", &kind_text, IN(result, stdin_path) },
	{ "group", &kind_text, IN(result, group) },
	{ "labels", &kind_map, IN(result, labels) },
	{ "source", &kind_text, IN(result, source) },
	{ "width", &kind_number, IN(result, width), 1 },
	{ "attempt", &kind_number, IN(result, attempt) },
	{ "run", &kind_number, IN(result, run) },
	{ "warmup", &kind_flag, IN(result, warmup) },
	{ "variant", IN_PLACE(result, variant) },
	{ "block", &kind_number, IN(result, block) },
	{ "reason", &kind_reason, IN(result, reason) },
	{ "exit", &kind_exit, IN(result, status) },
	{ "signal", &kind_signal, IN(result, status) },
	{ "core_dumped", &kind_flag, IN(result, status.core_dumped) },
	{ "start", IN_PLACE(result, start) },
	{ "wall_ns", &kind_value, .arg = RESULT_WALL_NS },
	{ "user_ns", &kind_value, .arg = RESULT_USER_NS },
	{ "sys_ns", &kind_value, .arg = RESULT_SYS_NS },
	{ "maxrss_kb", &kind_value, .arg = RESULT_MAXRSS_KB },
	{ "memory_peak_kb", &kind_value, .arg = RESULT_MEMORY_PEAK_KB },
	{ "minflt", &kind_value, .arg = RESULT_MINFLT },
	{ "majflt", &kind_value, .arg = RESULT_MAJFLT },
	{ "nvcsw", &kind_value, .arg = RESULT_NVCSW },
	{ "nivcsw", &kind_value, .arg = RESULT_NIVCSW },
	{ "value", &kind_reported },
	{ "unit", &kind_text, IN(result, unit) },
	{ "more_is_better", &kind_flag, IN(result, more_is_better) },
	{ "cores", &kind_text, IN(result, cores) },
	{ "node", &kind_text, IN(result, node) },
	{ "counts", &kind_counts },
	{ "suspect", &kind_list, IN(result, suspect) },
	{ "stdout", &kind_output, IN(result, out) },
	{ "stderr", &kind_output, IN(result, err_out) },
	{ "tail", &kind_text, IN(result, tail) },
	{ "missing", &kind_map, IN(result, missing) },
};

void result_write(const struct result *result, struct buf *out)
{
	struct json_out json = JSON_OUT(out);
	write_object(&json, NULL, FIELDS(result_fields), result);
	buf_append_char(out, '\n');
}

int result_read(const char *line, size_t len, struct result *ret_result, struct err *err)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	struct json_in in;
	bool other = false, has_reason = false;
	size_t next = 0;

	*ret_result = RESULT_INIT;
	json_in_init(&in, line, len);
	int r = json_in_enter(&in, '{');
	while (r >= 0 && (r = json_in_member(&in, &key)) > 0) {
		other = other || str_eq(buf_str(&key), "muster");
		has_reason = has_reason || str_eq(buf_str(&key), "reason");
		r = read_field(&in, FIELDS(result_fields), &next, buf_str(&key), ret_result);
	}
	if (r >= 0)
		r = json_in_end(&in);
	if (r < 0)
		return err_set(err, EINVAL, "column %zu%s%s: not a line of a result file",
			       json_in_column(&in), buf_len(&key) ? ", key " : "", buf_str(&key));
	if (other)
		return 0;
	if (!ret_result->id || !has_reason)
		return err_set(err, EINVAL, "no '%s': not a line of a result file",
			       ret_result->id ? "reason" : "id");
	return 1;
}
