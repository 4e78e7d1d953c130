#include "proto/k8s/trainer_status.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "proto/json_out.h"

#define SECONDS_MAX INT32_MAX /* the type of the field */

/* Numbers are texts there. */
static void put_metric(struct json_out *out, const char *name, const char *value)
{
	json_out_open(out, NULL, '{');
	json_out_text(out, "name", name);
	json_out_text(out, "value", value);
	json_out_close(out, '}');
}

static void put_number(struct json_out *out, const char *name, uint64_t number)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRIu64, number);
	put_metric(out, name, text);
}

static void put_metrics(struct json_out *out, const struct trainer_status *status)
{
	const struct step_progress_sum *steps = &status->steps;
	json_out_open(out, "metrics", '[');
	put_number(out, "step", steps->least);
	if (steps->total)
		put_number(out, "total_steps", steps->total);
	if (steps->has_saved)
		put_number(out, "saved_step", steps->saved);
	if (steps->rate > 0) {
		char text[32];
		snprintf(text, sizeof(text), "%.6g", steps->rate);
		put_metric(out, "steps_per_second", text);
	}
	put_number(out, "restarts", status->restarts);
	json_out_close(out, ']');
}

static int64_t percentage(const struct trainer_status *status)
{
	const struct step_progress_sum *steps = &status->steps;
	if (status->done)
		return 100;
	return (int64_t)MIN((double)steps->least * 100 / (double)steps->total, 99.0);
}

void trainer_status_put(const struct trainer_status *status, struct buf *out)
{
	const struct step_progress_sum *steps = &status->steps;
	char now[CLOCK_ISO_MAX];
	clock_iso(status->wall_ns, now);
	struct json_out json = JSON_OUT(out);
	json_out_open(&json, NULL, '{');
	json_out_open(&json, "trainerStatus", '{');
	if (status->done || steps->total)
		json_out_int(&json, "progressPercentage", percentage(status));
	if (status->done)
		json_out_int(&json, "estimatedRemainingSeconds", 0);
	else if (steps->left_s >= 0)
		json_out_int(&json, "estimatedRemainingSeconds",
			     (int64_t)MIN(steps->left_s + 0.5, (double)SECONDS_MAX));
	put_metrics(&json, status);
	json_out_text(&json, "lastUpdatedTime", now);
	json_out_close(&json, '}');
	json_out_close(&json, '}');
}
