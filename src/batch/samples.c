#include "batch/samples.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "batch/results.h"
#include "proto/json_in.h"
#include "proto/shell.h"

static void order_free(struct sample_order *order)
{
	free(order->id);
	free(order->hash);
	for (size_t i = 0; i < ARRAY_LEN(order->commands); i++)
		free(order->commands[i]);
	strv_done(&order->args);
	strv_done(&order->labels);
	free(order->program);
	free(order->source);
	free(order->group);
	strv_done(&order->arg_names);
	free(order->runs);
	free(order->last_failed);
	free(order->last_end);
	free(order->last_tail);
	free(order->node);
	free(order);
}

void samples_done(struct samples *samples)
{
	for (size_t i = 0; i < samples->order_count; i++)
		order_free(samples->orders[i]);
	free(samples->orders);
	free(samples->path);
	free(samples->host);
	free(samples->started);
	map_done(&samples->by_id);
	map_done(&samples->by_hash);
	*samples = SAMPLES_INIT;
}

/* ---- one attempt ---- */

char *samples_command_text(const struct result *result)
{
	if (result->shell)
		return mem_strdup(result->shell);
	struct buf text = BUF_INIT;
	for (size_t i = 0; i < result->argv.count; i++) {
		buf_append_str(&text, i ? " " : "");
		buf_append_str(&text, result->argv.items[i]);
	}
	return buf_take_str(&text);
}

/* A result file may name any variant: those that a batch cannot have count as the last. */
static size_t variant_index(char variant)
{
	size_t i = variant >= 'A' ? (size_t)(variant - 'A') : 0;
	return MIN(i, (size_t)REPEAT_SIDES_MAX - 1);
}

const char *samples_command(const struct sample_order *order, char variant)
{
	const char *command = order->commands[variant_index(variant)];
	return command ? command : "";
}

const char *samples_variant_name(size_t i)
{
	static const char *const names[] = { "A", "B", "C", "D", "E", "F", "G", "H" };
	static_assert(ARRAY_LEN(names) == REPEAT_SIDES_MAX, "every variant has a name");
	return names[i];
}

static void note_command(struct sample_order *order, const struct result *result)
{
	char **command = &order->commands[variant_index(result->variant[0])];
	if (!*command)
		*command = samples_command_text(result);
}

static struct sample_order *order_of(struct samples *samples, const struct result *result)
{
	size_t len = strlen(result->id);
	struct sample_order *order = map_get(&samples->by_id, result->id, len);
	if (order)
		return order;
	order = NEW(struct sample_order);
	order->id = mem_strdup(result->id);
	order->hash = mem_strdup(result->hash);
	order->named = result->named;
	strv_add_all(&order->args, strv_argv(&result->args));
	strv_add_all(&order->labels, strv_argv(&result->labels));
	order->program = shell_program(result->shell, result->source, result->argv.items);
	order->source = result->source ? mem_strdup(result->source) : NULL;
	order->group = result->group ? mem_strdup(result->group) : NULL;
	order->cores = result->width;
	order->number = samples->order_count;
	strv_add_all(&order->arg_names, strv_argv(&result->arg_names));
	ARRAY_RESERVE(samples->orders, samples->order_count, samples->order_cap);
	samples->orders[samples->order_count++] = order;
	map_put(&samples->by_id, order->id, len, order);
	map_put(&samples->by_hash, order->hash, strlen(order->hash), order);
	return order;
}

static double value_of(const struct result *result, enum result_value value)
{
	return result->has[value] ? (double)result->value[value] : NAN;
}

void samples_metrics(const struct result *result, double ret_values[METRIC_COUNT])
{
	ret_values[METRIC_WALL] = value_of(result, RESULT_WALL_NS);
	ret_values[METRIC_USER] = value_of(result, RESULT_USER_NS);
	ret_values[METRIC_SYS] = value_of(result, RESULT_SYS_NS);
	ret_values[METRIC_CPU] = ret_values[METRIC_USER] + ret_values[METRIC_SYS];
	ret_values[METRIC_MAXRSS] = value_of(result, RESULT_MAXRSS_KB);
	ret_values[METRIC_MEMORY] = value_of(result, RESULT_MEMORY_PEAK_KB);
	ret_values[METRIC_INSTRUCTIONS] = value_of(result, RESULT_INSTRUCTIONS);
}

static void note_counts(struct sample_counts *counts, const struct result *result)
{
	static const uint64_t key[2] = { 0, 0 };
	const char *source = result->count_source ? result->count_source : "unknown";
	const char *env = result->env_hash ? result->env_hash : "";
	uint64_t env_hash = *env ? map_hash(key, env, strlen(env)) : 0;
	if (!counts->source[0]) {
		snprintf(counts->source, sizeof(counts->source), "%s", source);
		counts->env_hash = env_hash;
		return;
	}
	if (!str_eq(counts->source, source))
		snprintf(counts->source, sizeof(counts->source), "mixed");
	counts->env_mixed |= counts->env_hash != env_hash;
}

static void add_run(struct sample_order *order, const struct result *result)
{
	bool has_code = result->status.kind == EXIT_CODE;
	struct sample_run run = { .block = result->block,
				  .exit = has_code ? result->status.value : 0,
				  .variant = result->variant[0],
				  .suspect = result->suspect.count > 0 };
	samples_metrics(result, run.values);
	if (result->has[RESULT_INSTRUCTIONS])
		note_counts(&order->counts, result);
	ARRAY_RESERVE(order->runs, order->run_count, order->run_cap);
	order->runs[order->run_count++] = run;
}

static void note_failure(struct sample_order *order, const struct result *result)
{
	order->failed++;
	free(order->last_failed);
	free(order->last_end);
	free(order->last_tail);
	order->last_failed = mem_strdup(reason_name(result->reason));
	struct buf text = BUF_INIT;
	if (result->status.kind != EXIT_UNKNOWN)
		exit_status_describe(&result->status, &text);
	order->last_end = buf_len(&text) ? buf_take_str(&text) : NULL;
	buf_done(&text);
	order->last_tail = result->tail ? mem_strdup(result->tail) : NULL;
}

static int on_result(void *arg, struct result *result, struct err *err UNUSED)
{
	struct samples *samples = arg;
	if (result->warmup || result->reason == REASON_CANARY)
		return 0;
	struct sample_order *order = order_of(samples, result);
	note_command(order, result);
	if (result->variant[0])
		samples->variant_count =
			MAX(samples->variant_count, variant_index(result->variant[0]) + 1);
	if (result->node) {
		free(order->node);
		order->node = mem_strdup(result->node);
	}
	if (result->reason == REASON_OK) {
		add_run(order, result);
		return 0;
	}
	if (result->reason == REASON_LOST)
		order->run_count = 0; /* all runs begin again, on one host */
	note_failure(order, result);
	return 0;
}

/* ---- labels ---- */

struct label_of samples_labels(const struct sample_order *order)
{
	return (struct label_of){ .labels = &order->labels,
				  .args = &order->args,
				  .arg_names = &order->arg_names,
				  .id = order->id,
				  .program = order->program,
				  .source = order->source,
				  .group = order->group,
				  .cores = order->cores };
}

void samples_filter(struct samples *samples, const struct strv *filter)
{
	size_t kept = 0;
	for (size_t i = 0; i < samples->order_count; i++) {
		struct sample_order *order = samples->orders[i];
		struct label_of labels = samples_labels(order);
		if (label_filter_holds(filter, &labels)) {
			samples->orders[kept++] = order;
			continue;
		}
		map_remove(&samples->by_id, order->id, strlen(order->id));
		if (map_get(&samples->by_hash, order->hash, strlen(order->hash)) == order)
			map_remove(&samples->by_hash, order->hash, strlen(order->hash));
		order_free(order);
	}
	samples->order_count = kept;
}

/* ---- header ---- */

static int header_host(struct json_in *in, char **ret_name)
{
	AUTO(buf_done) struct buf key = BUF_INIT, text = BUF_INIT;
	int r = json_in_peek(in) == JSON_OBJECT ? json_in_enter(in, '{') : -EINVAL;
	while (r >= 0 && (r = json_in_member(in, &key)) > 0) {
		bool wanted = str_eq(buf_str(&key), "name") && json_in_peek(in) == JSON_STRING;
		r = wanted ? json_in_string(in, &text) : json_in_skip(in);
		if (r >= 0 && wanted) {
			free(*ret_name);
			*ret_name = mem_strdup(buf_str(&text));
		}
	}
	return r;
}

/* The header is only displayed: an unreadable one is not an error. */
static void read_header(struct samples *samples, struct buf *header)
{
	AUTO(buf_done) struct buf key = BUF_INIT, text = BUF_INIT;
	struct json_in in;
	json_in_init(&in, (const char *)buf_data(header), buf_len(header));
	int r = json_in_enter(&in, '{');
	while (r >= 0 && (r = json_in_member(&in, &key)) > 0) {
		if (str_eq(buf_str(&key), "host")) {
			r = header_host(&in, &samples->host);
		} else if (str_eq(buf_str(&key), "started") && json_in_peek(&in) == JSON_STRING) {
			r = json_in_string(&in, &text);
			free(samples->started);
			samples->started = mem_strdup(r < 0 ? "" : buf_str(&text));
		} else {
			r = json_in_skip(&in);
		}
	}
}

int samples_load(struct samples *samples, const char *path, struct err *err)
{
	*samples = (struct samples){ .path = mem_strdup(path),
				     .host = mem_strdup(""),
				     .started = mem_strdup("") };
	AUTO(buf_done) struct buf header = BUF_INIT;
	int r = results_read(path, on_result, samples, &header, NULL, err);
	if (r < 0) {
		samples_done(samples);
		return r;
	}
	read_header(samples, &header);
	return 0;
}

bool samples_counts(const struct sample_run *run, enum metric metric,
		    const struct sample_filter *filter)
{
	return (!filter->variant || run->variant == filter->variant) &&
	       (!run->suspect || filter->suspects) && !isnan(run->values[metric]);
}

size_t samples_values(const struct sample_order *order, enum metric metric,
		      const struct sample_filter *filter, double *ret_values, int32_t *ret_blocks)
{
	size_t n = 0;
	for (size_t i = 0; i < order->run_count; i++) {
		const struct sample_run *run = &order->runs[i];
		if (!samples_counts(run, metric, filter))
			continue;
		if (ret_blocks)
			ret_blocks[n] = run->block;
		ret_values[n++] = run->values[metric];
	}
	return n;
}
