#include "core/host/cpuset.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

int cpuset_count(const struct cpuset *set)
{
	int count = 0;
	for (size_t i = 0; i < CPUSET_WORDS; i++)
		count += __builtin_popcountll(set->words[i]);
	return count;
}

bool cpuset_empty(const struct cpuset *set)
{
	return cpuset_next(set, 0) < 0;
}

bool cpuset_intersects(const struct cpuset *a, const struct cpuset *b)
{
	for (size_t i = 0; i < CPUSET_WORDS; i++)
		if (a->words[i] & b->words[i])
			return true;
	return false;
}

void cpuset_union(struct cpuset *set, const struct cpuset *other)
{
	for (size_t i = 0; i < CPUSET_WORDS; i++)
		set->words[i] |= other->words[i];
}

void cpuset_subtract(struct cpuset *set, const struct cpuset *other)
{
	for (size_t i = 0; i < CPUSET_WORDS; i++)
		set->words[i] &= ~other->words[i];
}

int cpuset_next(const struct cpuset *set, int from)
{
	for (int i = MAX(from, 0); i < CPUSET_MAX; i = (i / 64 + 1) * 64) {
		uint64_t word = set->words[i / 64] >> (i % 64);
		if (word)
			return i + __builtin_ctzll(word);
	}
	return -1;
}

static int range_end(const struct cpuset *set, int first)
{
	while (cpuset_has(set, first + 1))
		first++;
	return first;
}

void cpuset_format(const struct cpuset *set, struct buf *out)
{
	const char *separator = "";
	for (int first = cpuset_next(set, 0), last; first >= 0;
	     first = cpuset_next(set, last + 1)) {
		last = range_end(set, first);
		buf_append_str(out, separator);
		buf_append_int(out, first);
		if (last > first) {
			buf_append_char(out, '-');
			buf_append_int(out, last);
		}
		separator = ",";
	}
}

/* One number of at most CPUSET_MAX - 1 at *text, which is moved past it; -EINVAL. */
static int take_number(const char **text)
{
	int value = 0;
	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	for (; isdigit((unsigned char)**text); ++*text) {
		value = value * 10 + (**text - '0');
		if (value >= CPUSET_MAX)
			return -EINVAL;
	}
	return value;
}

static const char *skip_blanks(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

int cpuset_parse(const char *text, struct cpuset *ret_set, struct err *err)
{
	struct cpuset set = CPUSET_INIT;
	const char *p = skip_blanks(text);
	while (*p) {
		int first = take_number(&p);
		int last = first;
		if (first >= 0 && *p == '-') {
			p++;
			last = take_number(&p);
		}
		if (first < 0 || last < first)
			return err_set(err, EINVAL, "'%s' is not a list of CPUs such as 0-3,8",
				       text);
		for (int cpu = first; cpu <= last; cpu++)
			cpuset_add(&set, cpu);
		bool more = *p == ',';
		p = more ? p + 1 : skip_blanks(p);
		if (*p && !more)
			return err_set(err, EINVAL, "'%s' is not a list of CPUs such as 0-3,8",
				       text);
		if (more && !*p)
			return err_set(err, EINVAL, "'%s' is not a list of CPUs such as 0-3,8",
				       text);
	}
	*ret_set = set;
	return 0;
}
