#include "proto/args/regex.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"

struct translation {
	const char *at; /* what is left of the text */
	struct buf out; /* what regcomp() takes */
	size_t depth, opened, kept;
	size_t groups[REGEX_GROUPS];
	struct err *err;
};

static int refuse(const struct translation *now, const char *why)
{
	return err_set(now->err, EINVAL, "%s at '%.32s'", why, now->at);
}

/* The characters of \d and \D, and so on; NULL: not such a letter. */
static const char *class_of(char letter)
{
	switch (tolower((unsigned char)letter)) {
	case 'd':
		return "0-9";
	case 's':
		return "[:space:]";
	case 'w':
		return "_[:alnum:]";
	default:
		return NULL;
	}
}

/* \n and its like; '\0': the letter is none. */
static char control_of(char letter)
{
	static const char letters[] = "aefnrtv", bytes[] = "\a\033\f\n\r\t\v";
	const char *found = letter ? strchr(letters, letter) : NULL;
	return found ? bytes[found - letters] : '\0';
}

static int check_escape(const struct translation *now)
{
	char letter = now->at[1];
	if (!letter)
		return refuse(now, "nothing follows the backslash");
	if (isdigit((unsigned char)letter))
		return refuse(now, "back-references are not known");
	if (isalpha((unsigned char)letter) && !class_of(letter) && !control_of(letter))
		return refuse(now, "an escape that is not known");
	return 0;
}

static int take_escape(struct translation *now)
{
	char letter = now->at[1], control = control_of(letter);
	const char *class = class_of(letter);
	bool edge = letter == 'b' || letter == 'B';
	int r = edge ? 0 : check_escape(now);
	if (r < 0)
		return r;
	now->at += 2;
	if (class)
		buf_printf(&now->out, "[%s%s]", isupper((unsigned char)letter) ? "^" : "", class);
	else if (control)
		buf_append_char(&now->out, control);
	else if (edge || strchr(".[]()*+?{}|^$\\", letter))
		buf_printf(&now->out, "\\%c", letter);
	else
		buf_append_char(&now->out, letter);
	return 0;
}

/* A character in brackets: by name where POSIX would take it for a sign. */
static void put_member(struct translation *now, char letter)
{
	bool sign = strchr("[]^-", letter);
	buf_printf(&now->out, sign ? "[.%c.]" : "%c", letter);
}

static int take_member(struct translation *now)
{
	const char *named = strncmp(now->at, "[:", 2) == 0 ? strstr(now->at, ":]") : NULL;
	if (named) {
		buf_append(&now->out, now->at, (size_t)(named + 2 - now->at));
		now->at = named + 2;
		return 0;
	}
	if (*now->at != '\\') {
		put_member(now, *now->at++);
		return 0;
	}
	int r = check_escape(now);
	if (r < 0)
		return r;
	char letter = now->at[1], control = control_of(letter);
	const char *class = class_of(letter);
	if (class && isupper((unsigned char)letter))
		return refuse(now, "only \\d, \\s and \\w are known in brackets");
	if (class)
		buf_append_str(&now->out, class);
	else
		put_member(now, control ? control : letter);
	now->at += 2;
	return 0;
}

static int take_brackets(struct translation *now)
{
	bool inverted = *++now->at == '^';
	now->at += inverted;
	buf_append_str(&now->out, inverted ? "[^" : "[");
	for (bool first = true; first || *now->at != ']'; first = false) {
		if (!*now->at)
			return refuse(now, "']' is missing");
		bool range = !first && now->at[0] == '-' && now->at[1] && now->at[1] != ']';
		if (range)
			buf_append_char(&now->out, *now->at++);
		if (range && *now->at == '\\' && class_of(now->at[1]))
			return refuse(now, "a range without an end");
		int r = take_member(now);
		if (r < 0)
			return r;
	}
	buf_append_char(&now->out, *now->at++);
	return 0;
}

static int take_group(struct translation *now)
{
	bool kept = now->at[1] != '?';
	if (!kept && now->at[2] != ':')
		return refuse(now, "only (...) and (?:...) are known");
	now->opened++;
	now->depth++;
	if (kept && now->kept < REGEX_GROUPS)
		now->groups[now->kept++] = now->opened;
	buf_append_char(&now->out, '(');
	now->at += kept ? 1 : 3;
	return 0;
}

/* A sign of repetition, or {2,5}. POSIX would take the '?' of x+? for another one. */
static int take_repeat(struct translation *now)
{
	size_t len = *now->at == '{' ? strcspn(now->at, "}") : 0;
	len += now->at[len] != '\0';
	if (now->at[len] && strchr("*+?", now->at[len]))
		return refuse(now, "a second sign of repetition");
	buf_append(&now->out, now->at, len);
	now->at += len;
	return 0;
}

static int take(struct translation *now)
{
	switch (*now->at) {
	case '\\':
		return take_escape(now);
	case '[':
		return take_brackets(now);
	case '(':
		return take_group(now);
	case ')':
		if (now->depth-- == 0)
			return refuse(now, "a ')' too many");
		break;
	case '{':
		if (isdigit((unsigned char)now->at[1]))
			return take_repeat(now);
		buf_append_char(&now->out, '\\');
		break;
	case '*':
	case '+':
	case '?':
		return take_repeat(now);
	}
	buf_append_char(&now->out, *now->at++);
	return 0;
}

static int compile(regex_t *ret_regex, const char *text, int flags, struct err *err)
{
	char why[128];
	int r = regcomp(ret_regex, text, REG_EXTENDED | flags);
	if (r == 0)
		return 0;
	regerror(r, ret_regex, why, sizeof(why));
	return err_set(err, EINVAL, "%s", why);
}

int regex_compile(regex_t *ret_regex, const char *text, int flags, size_t ret_groups[REGEX_GROUPS],
		  struct err *err)
{
	struct translation now = { .at = text, .out = BUF_INIT, .err = err };
	int r = 0;
	while (r == 0 && *now.at)
		r = take(&now);
	if (r == 0)
		r = compile(ret_regex, buf_str(&now.out), flags, err);
	if (r == 0 && ret_groups)
		memcpy(ret_groups, now.groups, sizeof(now.groups));
	buf_done(&now.out);
	return r;
}
