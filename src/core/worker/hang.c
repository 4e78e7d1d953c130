#include "core/worker/hang.h"

#include "base/clock.h"

#define PERIOD_MIN_NS (10 * NS_PER_MS)
#define PERIOD_MAX_NS NS_PER_S

static const char *const kind_texts[] = {
	[HANG_NONE] = "fine",
	[HANG_START] = "no output and no heartbeat since its start",
	[HANG_SILENT] = "no output and no heartbeat",
	[HANG_UNINTERRUPTIBLE] = "in uninterruptible sleep",
};
static_assert(ARRAY_LEN(kind_texts) == HANG_KIND_COUNT, "every kind needs a text");

const char *hang_kind_text(enum hang_kind kind)
{
	return kind_texts[kind];
}

static uint64_t shorter(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

uint64_t hang_period_ns(const struct hang_policy *policy)
{
	uint64_t shortest =
		shorter(shorter(policy->start_ns, policy->silent_ns), policy->uninterruptible_ns);
	if (!shortest)
		return 0;
	return MIN(MAX(shortest / HANG_LOOKS, PERIOD_MIN_NS), PERIOD_MAX_NS);
}

void hang_begin(struct hang *hang, uint64_t now_ns)
{
	*hang = (struct hang){ .alive_ns = now_ns };
}

void hang_pause(struct hang *hang, uint64_t pause_ns)
{
	hang->alive_ns = ns_add(hang->alive_ns, pause_ns);
	if (hang->stuck_since_ns)
		hang->stuck_since_ns = ns_add(hang->stuck_since_ns, pause_ns);
}

static bool over(uint64_t since_ns, uint64_t limit_ns, uint64_t now_ns)
{
	return limit_ns && now_ns - since_ns >= limit_ns;
}

enum hang_kind hang_look(struct hang *hang, const struct hang_policy *policy, uint64_t progress,
			 bool uninterruptible, uint64_t now_ns, uint64_t *ret_since_ns)
{
	if (progress != hang->progress) {
		hang->progress = progress;
		hang->alive_ns = now_ns;
		hang->spoke = true;
		hang->told = false;
	}
	if (!uninterruptible)
		hang->stuck_since_ns = 0;
	else if (!hang->stuck_since_ns)
		hang->stuck_since_ns = now_ns;

	enum hang_kind kind = HANG_NONE;
	*ret_since_ns = hang->alive_ns;
	if (hang->stuck_since_ns &&
	    over(hang->stuck_since_ns, policy->uninterruptible_ns, now_ns)) {
		kind = HANG_UNINTERRUPTIBLE;
		*ret_since_ns = hang->stuck_since_ns;
	} else if (!hang->spoke && over(hang->alive_ns, policy->start_ns, now_ns)) {
		kind = HANG_START;
	} else if ((hang->spoke || !policy->start_ns) &&
		   over(hang->alive_ns, policy->silent_ns, now_ns)) {
		kind = HANG_SILENT;
	}
	if (hang->told)
		return HANG_NONE;
	hang->told = kind != HANG_NONE;
	return kind;
}
