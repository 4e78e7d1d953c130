#include "core/rounds/strikes.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"

void strikes_add(struct strikes *strikes, const char *host, int32_t rank, uint64_t now_ns)
{
	struct strike *strike = &strikes->items[strikes->count++ % STRIKES_KEPT];
	snprintf(strike->host, sizeof(strike->host), "%s", host);
	strike->rank = rank;
	strike->when_ns = now_ns;
}

static size_t kept(const struct strikes *strikes)
{
	return MIN(strikes->count, (size_t)STRIKES_KEPT);
}

/* The rank has failed on another host too, within the cool-down. */
static bool is_code(const struct strikes *strikes, const struct strike *strike, uint64_t since_ns)
{
	for (size_t i = 0; i < kept(strikes); i++) {
		const struct strike *other = &strikes->items[i];
		if (other->rank == strike->rank && other->when_ns >= since_ns &&
		    !str_eq(other->host, strike->host))
			return true;
	}
	return false;
}

uint32_t strikes_against(const struct strikes *strikes, const char *host,
			 const struct strikes_rule *rule, uint64_t now_ns, uint64_t *ret_until_ns)
{
	uint64_t since_ns = now_ns - MIN(now_ns, rule->cool_down_ns), last_ns = 0;
	uint32_t count = 0;
	int32_t first_rank = -1;
	bool different = rule->one_rank;
	for (size_t i = 0; rule->limit && i < kept(strikes); i++) {
		const struct strike *strike = &strikes->items[i];
		if (strike->when_ns < since_ns || !str_eq(strike->host, host) ||
		    is_code(strikes, strike, since_ns))
			continue;
		different |= count > 0 && strike->rank != first_rank;
		first_rank = count ? first_rank : strike->rank;
		last_ns = MAX(last_ns, strike->when_ns);
		count++;
	}
	if (!rule->limit || count < rule->limit || !different)
		return 0;
	*ret_until_ns = ns_add(last_ns, rule->cool_down_ns);
	return count;
}
