#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/utf8.h"

bool str_ends(const char *text, const char *suffix)
{
	size_t len = strlen(text), tail = strlen(suffix);
	return len >= tail && memcmp(text + len - tail, suffix, tail) == 0;
}

int str_to_u64(const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;
	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return -ERANGE;
	}
	*ret_value = value;
	return 0;
}

int str_to_i64(const char *text, int64_t *ret_value)
{
	bool negative = *text == '-';
	if (*text == '-' || *text == '+')
		text++;
	uint64_t value;
	int r = str_to_u64(text, &value);
	if (r < 0)
		return r;
	if (value > (uint64_t)INT64_MAX + negative)
		return -ERANGE;
	*ret_value = negative ? (int64_t)(0 - value) : (int64_t)value;
	return 0;
}

int str_hex_to_u64(const char *text, uint64_t *ret_value)
{
	uint64_t value = 0;
	const char *p = text;
	for (; isxdigit((unsigned char)*p); p++) {
		if (value >> 60)
			return -ERANGE;
		int digit = isdigit((unsigned char)*p) ? *p - '0'
						       : tolower((unsigned char)*p) - 'a' + 10;
		value = value << 4 | (uint64_t)digit;
	}
	if (p == text)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int str_to_i64_python(const char *text, int64_t *ret_value)
{
	char digits[64];
	size_t len = 0;

	while (isspace((unsigned char)*text))
		text++;
	size_t rest = strlen(text);
	while (rest > 0 && isspace((unsigned char)text[rest - 1]))
		rest--;
	for (size_t i = 0; i < rest; i++) {
		bool inside = i > 0 && i + 1 < rest && isdigit((unsigned char)text[i - 1]) &&
			      isdigit((unsigned char)text[i + 1]);
		if (text[i] == '_' && inside)
			continue;
		if (len + 1 >= sizeof(digits))
			return -ERANGE;
		digits[len++] = text[i];
	}
	digits[len] = '\0';
	return str_to_i64(digits, ret_value);
}

/* Plain decimals of few digits, which most are: the digits and the power of ten are exact, and one
 * division rounds as strtod() does, in a tenth of its time. False: not such a number. */
static bool short_decimal(const char *text, double *ret_value)
{
	static const double tens[] = { 1,   1e1, 1e2,  1e3,  1e4,  1e5,	 1e6,  1e7,
				       1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };
	uint64_t digits = 0;
	size_t len = 0, places = 0;
	for (bool fraction = false; *text && len < ARRAY_LEN(tens); text++) {
		if (*text == '.' && !fraction && len) {
			fraction = true;
			continue;
		}
		if (*text < '0' || *text > '9')
			return false;
		digits = 10 * digits + (uint64_t)(*text - '0');
		len++;
		places += fraction;
	}
	if (*text || !len)
		return false;
	*ret_value = (double)digits / tens[places];
	return true;
}

int str_to_double(const char *text, double *ret_value)
{
	if (short_decimal(text, ret_value))
		return 0;
	while (isspace((unsigned char)*text))
		text++;
	/* strtod reads hexadecimal, Python does not. */
	if (!*text || strpbrk(text, "xXpP("))
		return -EINVAL;
	char *end;
	errno = 0;
	double value = strtod(text, &end);
	if (end == text)
		return -EINVAL;
	while (isspace((unsigned char)*end))
		end++;
	if (*end)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

struct unit {
	const char *name;
	uint64_t factor;
};

/* A non-negative real number followed by a unit of the table. */
static int number_with_unit(const char *text, const struct unit *units, size_t count, uint64_t *ret)
{
	char *end;
	if (!isdigit((unsigned char)*text) && *text != '.')
		return -EINVAL;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return -EINVAL;
	double value = strtod(text, &end);
	if (end == text)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (strcasecmp(end, units[i].name) != 0)
			continue;
		double scaled = round(value * (double)units[i].factor);
		if (!(scaled < 9e18))
			return -ERANGE;
		*ret = (uint64_t)scaled;
		return 0;
	}
	return -EINVAL;
}

int str_to_duration_ns(const char *text, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{ "", NS_PER_S },
		{ "s", NS_PER_S },
		{ "ms", NS_PER_MS },
		{ "us", NS_PER_US },
		{ "ns", 1 },
		{ "m", 60 * NS_PER_S },
		{ "min", 60 * NS_PER_S },
		{ "h", 3600 * NS_PER_S },
		{ "d", 86400 * NS_PER_S },
	};
	return number_with_unit(text, units, ARRAY_LEN(units), ret_ns);
}

int str_to_size(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "K", 1ull << 10 },
		{ "KB", 1ull << 10 },
		{ "KiB", 1ull << 10 },
		{ "M", 1ull << 20 },
		{ "MB", 1ull << 20 },
		{ "MiB", 1ull << 20 },
		{ "G", 1ull << 30 },
		{ "GB", 1ull << 30 },
		{ "GiB", 1ull << 30 },
		{ "T", 1ull << 40 },
		{ "TB", 1ull << 40 },
		{ "TiB", 1ull << 40 },
	};
	return number_with_unit(text, units, ARRAY_LEN(units), ret_bytes);
}

#define DISTANCE_MAX 64
#define NEAREST_MAX 3 /* edits in a word that is still recognised */

void str_make_printable(char *text)
{
	text[utf8_make_printable(text, strlen(text), "")] = '\0';
}

unsigned str_distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);
	if (la >= DISTANCE_MAX || lb >= DISTANCE_MAX)
		return UINT32_MAX;

	unsigned rows[3][DISTANCE_MAX + 1];
	unsigned *two = rows[0], *one = rows[1], *row = rows[2];
	for (size_t j = 0; j <= lb; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned *reuse = two;
		two = one, one = row, row = reuse;
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned best = one[j - 1] + (a[i - 1] != b[j - 1]);
			best = MIN(best, MIN(one[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = MIN(best, two[j - 2] + 1);
			row[j] = best;
		}
	}
	return row[lb];
}

const char *str_nearest(const char *typed, const char *name, const char *best)
{
	/* Of a word of two letters, one that is wrong leaves too little to guess from. */
	size_t len = strlen(typed);
	unsigned limit = len > 0 ? (unsigned)MIN((len - 1) / 2, (size_t)NEAREST_MAX) : 0;
	unsigned distance = str_distance(typed, name);
	return distance <= limit && (!best || distance < str_distance(typed, best)) ? name : best;
}

int str_to_signal(const char *text)
{
	uint64_t number;
	if (str_to_u64(text, &number) == 0)
		return number > 0 && number < NSIG ? (int)number : -EINVAL;
	if (strncasecmp(text, "SIG", 3) == 0)
		text += 3;
	for (int sig = 1; sig < NSIG; sig++) {
		const char *name = sigabbrev_np(sig);
		if (name && strcasecmp(name, text) == 0)
			return sig;
	}
	return -EINVAL;
}

const char *str_signal_name(int sig)
{
	/* sigabbrev_np gives the name without its prefix; the table adds it once, at first use. */
	static char names[NSIG][16];
	const char *abbrev = sig > 0 && sig < NSIG ? sigabbrev_np(sig) : NULL;
	if (!abbrev)
		return NULL;
	if (!names[sig][0]) {
		strcpy(names[sig], "SIG");
		strncat(names[sig], abbrev, sizeof(names[sig]) - 4);
	}
	return names[sig];
}

const char *str_split(const char **rest, char sep, size_t *ret_len)
{
	const char *piece = *rest;
	if (!piece)
		return NULL;
	const char *end = strchr(piece, sep);
	*ret_len = end ? (size_t)(end - piece) : strlen(piece);
	*rest = end ? end + 1 : NULL;
	return piece;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

const char *str_trim(const char *text, size_t *len)
{
	for (; *len && is_blank(*text); (*len)--)
		text++;
	while (*len && is_blank(text[*len - 1]))
		(*len)--;
	return text;
}
