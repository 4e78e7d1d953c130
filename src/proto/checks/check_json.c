#include "proto/checks/check_json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/checks/across.h"
#include "proto/json_value.h"

void check_json_write(struct json_out *out, const struct check_result *result)
{
	json_out_open(out, NULL, '{');
	json_out_text(out, "name", result->name);
	json_out_text(out, "state", check_state_name(result->state));
	json_out_text(out, "text", result->text);
	json_out_text_if(out, "remedy", result->remedy);
	json_out_open(out, "figures", '[');
	for (size_t i = 0; i < result->figure_count; i++) {
		const struct check_figure *figure = &result->figures[i];
		json_out_open(out, NULL, '{');
		json_out_text(out, "name", figure->name);
		json_out_real(out, "value", figure->value);
		json_out_text_if(out, "unit", figure->unit);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
	json_out_open(out, "facts", '{');
	for (size_t i = 0; i < result->fact_count; i++)
		json_out_text(out, result->facts[i].name, result->facts[i].value);
	json_out_close(out, '}');
	json_out_close(out, '}');
}

/* An object and its first member, as JSON_LAYOUT writes it: nothing else prints that by chance. */
#define JSON_BEGIN "{\n  \"host\": \""
#define JSON_LAYOUT(buf, depth) JSON_OUT(buf, .indent = 2, .flat = (depth))

static void write_checks(struct json_out *out, const char *host, const struct check_list *results)
{
	json_out_text(out, "host", host);
	json_out_text(out, "state", check_state_name(check_list_worst(results)));
	json_out_open(out, "checks", '[');
	for (size_t i = 0; i < results->count; i++)
		check_json_write(out, &results->items[i]);
	json_out_close(out, ']');
}

void check_json_write_all(const char *host, const struct check_list *results, struct buf *buf)
{
	struct json_out out = JSON_LAYOUT(buf, 3);
	json_out_open(&out, NULL, '{');
	write_checks(&out, host, results);
	json_out_close(&out, '}');
	buf_append_char(buf, '\n');
}

void check_json_write_hosts(const struct across *across, struct buf *buf)
{
	struct json_out out = JSON_LAYOUT(buf, 5);
	json_out_open(&out, NULL, '{');
	json_out_text(&out, "state", check_state_name(across_worst(across)));
	json_out_open(&out, "hosts", '[');
	for (size_t i = 0; i < across->count; i++) {
		json_out_open(&out, NULL, '{');
		write_checks(&out, across->items[i].name, &across->items[i].results);
		json_out_close(&out, '}');
	}
	json_out_close(&out, ']');
	json_out_close(&out, '}');
	buf_append_char(buf, '\n');
}

static void copy_text(struct json_value object, const char *key, char *ret_text, size_t size)
{
	AUTO_FREE char *text = json_value_text(json_value_get(object, key));
	snprintf(ret_text, size, "%s", text ? text : "");
	str_make_printable(ret_text);
}

static bool is_number(struct json_value value)
{
	return value.kind == JSON_NUMBER && isfinite(json_value_real(value));
}

static void read_figures(struct json_value list, struct check_result *result)
{
	struct json_value item;
	struct json_in in;
	for (json_value_enter(list, &in); json_value_next(&in, &item);) {
		char name[CHECK_NAME_MAX], unit[CHECK_NAME_MAX];
		struct json_value value = json_value_get(item, "value");
		copy_text(item, "name", name, sizeof(name));
		copy_text(item, "unit", unit, sizeof(unit));
		if (is_number(value))
			check_measure(result, name, json_value_real(value), unit);
	}
}

static void read_facts(struct json_value object, struct check_result *result)
{
	struct json_value value;
	struct json_in in;
	AUTO(buf_done) struct buf key = BUF_INIT;
	if (object.kind != JSON_OBJECT)
		return;
	for (json_value_enter(object, &in); json_value_next_member(&in, &key, &value);) {
		AUTO_FREE char *text = json_value_text(value);
		if (text)
			check_state_fact(result, buf_str(&key), text);
	}
}

/* CHECK_STATE_COUNT: it has none. */
static enum check_state read_state(struct json_value all)
{
	char name[CHECK_NAME_MAX];
	copy_text(all, "state", name, sizeof(name));
	int state = 0;
	while (state < CHECK_STATE_COUNT &&
	       !str_eq(name, check_state_name((enum check_state)state)))
		state++;
	return (enum check_state)state;
}

static int read_result(struct json_value all, struct check_result *ret_result, struct err *err)
{
	if (all.kind != JSON_OBJECT)
		return err_set(err, EPROTO, "not the result of a check");
	struct check_result result = { .state = read_state(all) };
	copy_text(all, "name", result.name, sizeof(result.name));
	copy_text(all, "text", result.text, sizeof(result.text));
	copy_text(all, "remedy", result.remedy, sizeof(result.remedy));
	if (result.state == CHECK_STATE_COUNT || !result.name[0])
		return err_set(err, EPROTO, "a result without a name or a state");
	read_figures(json_value_get(all, "figures"), &result);
	read_facts(json_value_get(all, "facts"), &result);
	check_make_printable(&result);
	*ret_result = result;
	return 0;
}

int check_json_read(const char *text, size_t len, struct check_result *ret_result, struct err *err)
{
	struct json_value all;
	if (json_value_parse(text, len, &all) < 0)
		return err_set(err, EPROTO, "not the result of a check");
	return read_result(all, ret_result, err);
}

int check_json_read_all(const char *text, size_t len, struct check_list *ret_results,
			struct err *err)
{
	AUTO(check_list_done) struct check_list results = CHECK_LIST_INIT;
	struct json_value all, item;
	struct json_in in;
	if (json_value_parse(text, len, &all) < 0 || all.kind != JSON_OBJECT)
		return err_set(err, EPROTO, "not the results of checks");
	struct json_value list = json_value_get(all, "checks");
	if (list.kind != JSON_ARRAY)
		return err_set(err, EPROTO, "results without a list of checks");
	for (json_value_enter(list, &in); json_value_next(&in, &item);) {
		struct check_result result;
		int r = results.count == CHECK_JSON_MAX
				? err_set(err, EPROTO, "more than %d results", CHECK_JSON_MAX)
				: read_result(item, &result, err);
		if (r < 0)
			return r;
		check_list_add(&results, &result);
	}
	*ret_results = results;
	results = CHECK_LIST_INIT;
	return 0;
}

bool check_json_figures(const char *text, size_t len, struct check_result *result)
{
	struct json_value all, member;
	struct json_in in;
	AUTO(buf_done) struct buf key = BUF_INIT;
	if (json_value_parse(text, len, &all) < 0 || all.kind != JSON_OBJECT)
		return false;
	for (json_value_enter(all, &in); json_value_next_member(&in, &key, &member);)
		if (is_number(member))
			check_measure(result, buf_str(&key), json_value_real(member), "");
	check_make_printable(result);
	return true;
}
