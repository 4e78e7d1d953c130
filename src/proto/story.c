#include "proto/story.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/lines/ranges.h"
#include "proto/json_out.h"

void story_done(struct story *story)
{
	for (size_t i = 0; i < story->other_count; i++) {
		free(story->others[i].how);
		free(story->others[i].ranks);
	}
	free(story->others);
	free(story->headline);
	free(story->host);
	free(story->words);
	free(story->where);
	free(story->hint);
	*story = STORY_INIT;
}

static void put_first_cause(const struct story *story, struct json_out *out)
{
	AUTO(buf_done) struct buf end = BUF_INIT;
	char when[CLOCK_ISO_MAX];
	exit_status_describe(&story->status, &end);
	json_out_open(out, "first_cause", '{');
	if (!failure_reason_is_host(story->reason)) {
		json_out_int(out, "rank", story->rank);
		json_out_int(out, "local_rank", story->local_rank);
		json_out_int(out, "pid", story->pid);
	}
	json_out_text(out, "host", story->host);
	json_out_text(out, "reason", failure_reason_name(story->reason));
	json_out_text(out, "end", buf_str(&end));
	if (story->when_ns) {
		clock_iso(story->when_ns, when);
		json_out_text(out, "ended", when);
	}
	if (story->lived_ns)
		json_out_real(out, "lived_s", (double)story->lived_ns / (double)NS_PER_S);
	json_out_close(out, '}');
}

static void put_others(const struct story *story, struct json_out *out)
{
	json_out_open(out, "others", '[');
	for (size_t i = 0; i < story->other_count; i++) {
		const struct story_others *others = &story->others[i];
		AUTO(buf_done) struct buf ranks = BUF_INIT;
		struct ranges ranges = RANGES(&ranks, ",", 2);
		for (size_t k = 0; k < others->count; k++)
			ranges_add(&ranges, others->ranks[k]);
		ranges_end(&ranges);
		json_out_open(out, NULL, '{');
		json_out_int(out, "count", (int64_t)others->count);
		json_out_text(out, "how", others->how);
		json_out_bool(out, "stopped", others->stopped);
		json_out_text(out, "ranks", buf_str(&ranks));
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
}

static void put_steps(const struct step_progress_span *steps, struct json_out *out)
{
	if (!steps->workers)
		return;
	json_out_int(out, "step", (int64_t)steps->least);
	json_out_int(out, "most_step", (int64_t)steps->most);
	if (steps->savers)
		json_out_int(out, "saved_step", (int64_t)steps->saved);
}

/* The end of it, from the beginning of a line on. */
static const char *end_of(const char *words)
{
	size_t len = strlen(words);
	if (len <= STORY_WORDS_MAX)
		return words;
	const char *from = words + len - STORY_WORDS_MAX, *newline = strchr(from, '\n');
	return newline ? newline + 1 : from;
}

void story_put(const struct story *story, struct json_out *out)
{
	json_out_open(out, "story", '{');
	json_out_text(out, "headline", story->headline);
	if (story->failed) {
		put_first_cause(story, out);
		json_out_text_if(out, "words_from", story->where);
		json_out_text_if(out, "words", end_of(story->words));
		put_others(story, out);
		put_steps(&story->steps, out);
		json_out_text_if(out, "try", story->hint);
	}
	json_out_close(out, '}');
}

void story_put_verdict(const struct story *story, struct json_out *out)
{
	const struct judgement *judgement = &story->judgement;
	if (!story->failed)
		return;
	json_out_open(out, "verdict", '{');
	json_out_text(out, "class", failure_class_name(judgement->class));
	if (!failure_reason_is_host(story->reason))
		json_out_int(out, "rank", story->rank);
	json_out_text(out, "host", story->host);
	json_out_text(out, "sure", failure_certainty_name(judgement->certainty));
	json_out_text(out, "from", judgement->from);
	json_out_text_if(out, "symptom", judgement->symptom);
	json_out_text(out, "do", failure_advice_name(judgement->advice));
	json_out_close(out, '}');
}
