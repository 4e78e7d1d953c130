#include "cli/opt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/str.h"

#define SAME_MIN 5 /* letters */
#define HELP_COLUMN 30

static bool is_option(const struct opt *opt)
{
	return opt->type != OPT_TYPE_GROUP;
}

#define opt_foreach(it, opts) for (const struct opt *it = (opts); it->type != OPT_TYPE_END; it++)

static size_t index_of(const struct opt *opts, const char *name)
{
	opt_foreach(opt, opts) if (is_option(opt) &&
				   str_eq(opt->name, name)) return (size_t)(opt - opts);
	assert(!"no such option in the table");
	return 0;
}

bool opt_given(const struct opt *opts, const struct opt_seen *seen, const char *name)
{
	size_t index = index_of(opts, name);
	return seen->by_argv[index] || seen->by_env[index];
}

bool opt_by_variable(const struct opt *opts, const struct opt_seen *seen, const char *name)
{
	return seen->by_env[index_of(opts, name)];
}

/* Option names are compared as if every underscore were a dash. */
static bool name_matches(const char *name, const char *typed, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!name[i] || name[i] != (typed[i] == '_' ? '-' : typed[i]))
			return false;
	return true;
}

/* -ENOENT: there is none; -EINVAL: there are several. */
static int find_long(const struct opt *opts, const char *typed, size_t len, const struct opt **ret,
		     struct err *err)
{
	const struct opt *match = NULL, *other = NULL;
	opt_foreach(opt, opts)
	{
		if (!is_option(opt) || !name_matches(opt->name, typed, len))
			continue;
		if (opt->name[len] == '\0') {
			*ret = opt;
			return 0;
		}
		other = match;
		match = opt;
		if (other)
			break;
	}
	if (other)
		return err_set(err, EINVAL, "ambiguous option: --%.*s could match --%s, --%s",
			       (int)len, typed, other->name, match->name);
	if (!match || len == 0)
		return -ENOENT;
	*ret = match;
	return 0;
}

bool opt_known(const struct opt *opts, const char *word)
{
	const struct opt *opt;
	return strncmp(word, "--", 2) == 0 &&
	       find_long(opts, word + 2, strcspn(word + 2, "="), &opt, NULL) == 0;
}

/* `word` is what follows the letter; NULL: nothing. */
static const struct opt *find_short(const struct opt *opts, char c, const char *word)
{
	const struct opt *other = NULL;
	opt_foreach(opt, opts)
	{
		if (!is_option(opt) || opt->short_name != c)
			continue;
		if (opt->fits && word && opt->fits(word))
			return opt;
		if (!opt->fits)
			other = opt;
	}
	return other;
}

static int choose(const struct opt *opt, const char *text, int *ret_index, struct err *err)
{
	AUTO(buf_done) struct buf list = BUF_INIT;
	for (int i = 0; opt->choices[i]; i++) {
		if (str_eq(opt->choices[i], text)) {
			*ret_index = i;
			return 0;
		}
		buf_printf(&list, "%s%s", i ? ", " : "", opt->choices[i]);
	}
	return err_set(err, EINVAL, "invalid choice '%.64s' (choose from %s)", text,
		       buf_str(&list));
}

static int number_error(int r, const char *kind, const char *text, struct err *err)
{
	return err_set(err, EINVAL, "%s %s '%.64s'", r == -ERANGE ? "out of range:" : "invalid",
		       kind, text);
}

static int set_value(const struct opt *opt, const char *text, void *into, struct err *err)
{
	void *field = (char *)into + opt->offset;
	int r;

	switch (opt->type) {
	case OPT_TYPE_FLAG: {
		/* Only the environment gives a flag a value: an integer, as in torchrun. */
		int64_t on;
		if ((r = str_to_i64_python(text, &on)) < 0)
			return number_error(r, "flag value (use 0 or 1)", text, err);
		*(bool *)field = on != 0;
		return 0;
	}
	case OPT_TYPE_STR:
		*(const char **)field = text;
		return 0;
	case OPT_TYPE_INT:
		r = str_to_i64_python(text, field);
		return r < 0 ? number_error(r, "integer", text, err) : 0;
	case OPT_TYPE_FLOAT:
		r = str_to_double(text, field);
		return r < 0 ? number_error(r, "number", text, err) : 0;
	case OPT_TYPE_DURATION:
		r = str_to_duration_ns(text, field);
		return r < 0 ? number_error(r, "duration (such as 30, 1.5s, 200ms, 2m)", text, err)
			     : 0;
	case OPT_TYPE_SIZE:
		r = str_to_size(text, field);
		return r < 0 ? number_error(r, "size (such as 64K, 10M, 2G)", text, err) : 0;
	case OPT_TYPE_CHOICE:
		return choose(opt, text, field, err);
	case OPT_TYPE_LIST:
		strv_add(field, text);
		return 0;
	case OPT_TYPE_CALL:
		return opt->parse(text, field, err);
	case OPT_TYPE_END:
	case OPT_TYPE_GROUP:
		break;
	}
	assert(!"not an option");
	return -EINVAL;
}

static int refuse_later(const struct opt *opt, struct err *err)
{
	return err_set(err, EINVAL, "option '--%s' is not supported yet: %s", opt->name,
		       opt->later);
}

/* A word such as "-1" or "-x y" is a value, "-x" the next option. */
static bool looks_like_option(const char *word)
{
	double number;
	return word[0] == '-' && word[1] && !strchr(word, ' ') && str_to_double(word, &number) < 0;
}

struct parser {
	const struct opt *opts;
	enum opt_mode mode;
	void *into;
	int argc;
	char **argv;
	int next; /* index of the next unread word */
	struct opt_seen *seen;
};

/* The second and further values of one that takes several. */
static int take_more(struct parser *p, const struct opt *opt, struct err *err)
{
	for (int i = 1; i < opt->words; i++) {
		if (p->next >= p->argc)
			return err_set(err, EINVAL, "option '--%s' needs %d values: %s", opt->name,
				       opt->words, opt->arg);
		set_value(opt, p->argv[p->next++], p->into, NULL);
	}
	return 0;
}

/* `inline_value` is the value in the same word, NULL if there is none. */
static int take(struct parser *p, const struct opt *opt, const char *inline_value, struct err *err)
{
	if (opt->later)
		return refuse_later(opt, err);
	p->seen->by_argv[opt - p->opts] = true;
	if (opt->type == OPT_TYPE_FLAG) {
		if (inline_value)
			return err_set(err, EINVAL, "option '--%s' takes no value, got '%.64s'",
				       opt->name, inline_value);
		*(bool *)((char *)p->into + opt->offset) = true;
		return 0;
	}
	const char *value = inline_value ? inline_value : opt->bare;
	if (!value && opt->is_flag && opt->is_flag(p->into))
		value = "";
	if (!value) {
		if (p->next >= p->argc || looks_like_option(p->argv[p->next]))
			return err_set(err, EINVAL, "option '--%s' needs a value: %s", opt->name,
				       opt->arg ? opt->arg : "one of its choices");
		value = p->argv[p->next++];
		p->seen->took_last = p->next == p->argc ? opt : NULL;
	}
	if (set_value(opt, value, p->into, err) < 0)
		return err_wrap(err, "option '--%s'", opt->name);
	return take_more(p, opt, err);
}

/* "--nprocs" for --nproc-per-node: the first option with which it shares its beginning. */
static const char *same_beginning(const struct parser *p, const char *typed)
{
	opt_foreach(opt, p->opts)
	{
		size_t same = 0;
		while (is_option(opt) && typed[same] && typed[same] == opt->name[same])
			same++;
		if (same >= SAME_MIN && typed[same] && !typed[same + 1])
			return opt->name;
	}
	return NULL;
}

/* Where options end at a command, the word may have been meant for that command. */
static int refuse_unknown(const struct parser *p, const char *dashes, const char *word, size_t len,
			  struct err *err)
{
	char typed[64];
	snprintf(typed, sizeof(typed), "%.*s", (int)MIN(len, sizeof(typed) - 1), word);
	const char *nearest = NULL;
	opt_foreach(opt, p->opts)
	{
		if (str_eq(dashes, "--") && is_option(opt))
			nearest = str_nearest(typed, opt->name, nearest);
		else if (str_eq(dashes, "-") && opt->elsewhere == *word)
			nearest = opt->name;
	}
	if (!nearest && str_eq(dashes, "--"))
		nearest = same_beginning(p, typed);
	if (nearest)
		return err_set(err, EINVAL, "unknown option '%s%s'; did you mean '--%s'?", dashes,
			       typed, nearest);
	return err_set(err, EINVAL, "unknown option '%s%s'%s", dashes, typed,
		       p->mode == OPT_STOP_AT_POSITIONAL
			       ? "; options of your own program go behind its name"
			       : "");
}

static int parse_long(struct parser *p, const char *word, struct err *err)
{
	size_t len = strcspn(word, "=");
	const struct opt *opt = NULL;
	int r = find_long(p->opts, word, len, &opt, err);
	if (r == -ENOENT)
		return refuse_unknown(p, "--", word, len, err);
	return r < 0 ? r : take(p, opt, word[len] ? word + len + 1 : NULL, err);
}

static int parse_shorts(struct parser *p, const char *word, struct err *err)
{
	while (*word) {
		const char *next = p->next < p->argc ? p->argv[p->next] : NULL;
		const char *value = word[1] == '=' ? word + 2 : word[1] ? word + 1 : next;
		const struct opt *opt = find_short(p->opts, *word, value);
		if (!opt)
			return refuse_unknown(p, "-", word, 1, err);
		word++;
		if (opt->type == OPT_TYPE_FLAG) {
			int r = take(p, opt, *word == '=' ? word + 1 : NULL, err);
			if (r < 0)
				return r;
			continue;
		}
		return take(p, opt, *word ? word + (*word == '=') : NULL, err);
	}
	return 0;
}

static int read_environment(struct parser *p, struct err *err)
{
	opt_foreach(opt, p->opts)
	{
		const char *value = is_option(opt) && opt->env ? getenv(opt->env) : NULL;
		size_t index = (size_t)(opt - p->opts);
		if (!value || p->seen->by_argv[index])
			continue;
		if (opt->later)
			return refuse_later(opt, err);
		struct err why = ERR_INIT;
		int r = set_value(opt, value, p->into, opt->without_effect ? &why : err);
		if (r < 0 && !opt->without_effect)
			return err_wrap(err, "%s (default of '--%s')", opt->env, opt->name);
		if (r < 0)
			log_warn("%s, which has no effect: %s", opt->env, why.msg);
		p->seen->by_env[index] = true;
	}
	return 0;
}

/* Moves argv[from] to the end of argv, behind the positionals already there. */
static void rotate_to_end(char **argv, int from, int argc)
{
	char *word = argv[from];
	memmove(&argv[from], &argv[from + 1], (size_t)(argc - from - 1) * sizeof(char *));
	argv[argc - 1] = word;
}

int opt_parse(const struct opt *opts, enum opt_mode mode, void *into, int argc, char **argv,
	      struct opt_seen *ret_seen, struct err *err)
{
	struct opt_seen unused;
	struct parser p = { opts, mode, into, argc, argv, 1, ret_seen ? ret_seen : &unused };
	memset(p.seen, 0, sizeof(*p.seen));
	int unread = argc; /* the words from here on are positionals moved there */

	while (p.next < unread) {
		const char *word = argv[p.next];
		if (str_eq(word, "--")) {
			p.next++;
			break;
		}
		if (word[0] != '-' || !word[1]) {
			if (mode == OPT_STOP_AT_POSITIONAL)
				break;
			rotate_to_end(argv, p.next, argc);
			unread--;
			continue;
		}
		p.argc = unread;
		p.next++;
		if (str_eq(word, "-h") || str_eq(word, "--help"))
			return OPT_WANTS_HELP;
		int r = word[1] == '-' ? parse_long(&p, word + 2, err)
				       : parse_shorts(&p, word + 1, err);
		if (r < 0)
			return r;
	}
	/* The words after "--" came before the moved ones but are in front of them only after a
	 * rotation. */
	if (mode == OPT_PERMUTE) {
		for (int after = unread - p.next; after > 0; after--)
			rotate_to_end(argv, p.next, argc);
	}
	int r = read_environment(&p, err);
	return r < 0 ? r : p.next;
}

static void print_wrapped(FILE *out, const char *text, int indent, int column, int width)
{
	while (*text) {
		size_t word = strcspn(text, " ");
		if (column > indent && column + 1 + (int)word > width) {
			fprintf(out, "\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', out);
			column++;
		}
		fprintf(out, "%.*s", (int)word, text);
		column += (int)word;
		text += word;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static int characters(const char *text)
{
	int count = 0;
	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

static int print_signature(const struct opt *opt, FILE *out)
{
	int column = fprintf(out, "  ");
	if (opt->short_name)
		column += fprintf(out, "-%c, ", opt->short_name);
	column += fprintf(out, "--%s", opt->name);
	if (opt->type == OPT_TYPE_CHOICE) {
		for (int i = 0; opt->choices[i]; i++)
			column += fprintf(out, "%c%s", i ? '|' : '=', opt->choices[i]);
	} else if (opt->type != OPT_TYPE_FLAG) {
		fprintf(out, opt->bare ? "[=%s]" : "=%s", opt->arg);
		column += (opt->bare ? 3 : 1) + characters(opt->arg);
	}
	return column;
}

void opt_print_help(const struct opt *opts, FILE *out, int width)
{
	opt_foreach(opt, opts)
	{
		if (!is_option(opt)) {
			fprintf(out, "\n%s:\n", opt->help);
			continue;
		}
		int column = print_signature(opt, out);
		if (column >= HELP_COLUMN - 1) {
			fputc('\n', out);
			column = 0;
		}
		fprintf(out, "%*s", HELP_COLUMN - column, "");
		AUTO(buf_done) struct buf text = BUF_INIT;
		buf_append_str(&text, opt->help);
		if (opt->env)
			buf_printf(&text, " [%s]", opt->env);
		if (opt->later)
			buf_append_str(&text, " (not supported yet)");
		print_wrapped(out, buf_str(&text), HELP_COLUMN, HELP_COLUMN, width);
	}
}

void opt_print_names(const struct opt *opts, FILE *out)
{
	opt_foreach(opt, opts)
	{
		if (!is_option(opt))
			continue;
		const char *kind = opt->type == OPT_TYPE_FLAG || opt->bare ? "flag"
				   : opt->type == OPT_TYPE_CHOICE	   ? "choice"
									   : "value";
		if (opt->short_name)
			fprintf(out, "-%c %s\n", opt->short_name, kind);
		fprintf(out, "--%s %s", opt->name, kind);
		for (int i = 0; opt->choices && opt->choices[i]; i++)
			fprintf(out, " %s", opt->choices[i]);
		fputc('\n', out);
	}
}

void opt_print_help_lines(const struct opt *opts, FILE *out)
{
	opt_foreach(opt, opts)
	{
		if (!is_option(opt))
			continue;
		if (opt->short_name)
			fprintf(out, "-%c\t%s\n", opt->short_name, opt->help);
		fprintf(out, "--%s\t%s\n", opt->name, opt->help);
	}
}
