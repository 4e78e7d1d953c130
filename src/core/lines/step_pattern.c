#include "core/lines/step_pattern.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define SLOTS (2 * STEP_PATTERN_GROUPS)
#define NUMBER_MAX 24
#define UNSET UINT16_MAX

enum op {
	OP_SET,	  /* a byte of sets[a] */
	OP_SPLIT, /* at a, or else at b */
	OP_JUMP,  /* at a */
	OP_SAVE,  /* remember the place in slot a */
	OP_BEGIN, /* only at the beginning of the line */
	OP_END,	  /* only at its end */
	OP_MATCH,
};

/* ---- sets of bytes ---- */

static void set_add(struct byte_set *set, unsigned char byte)
{
	set->bits[byte / 64] |= UINT64_C(1) << byte % 64;
}

static bool set_has(const struct byte_set *set, unsigned char byte)
{
	return set->bits[byte / 64] >> byte % 64 & 1;
}

static void set_invert(struct byte_set *set)
{
	for (size_t i = 0; i < ARRAY_LEN(set->bits); i++)
		set->bits[i] = ~set->bits[i];
}

static void set_unite(struct byte_set *set, const struct byte_set *other)
{
	for (size_t i = 0; i < ARRAY_LEN(set->bits); i++)
		set->bits[i] |= other->bits[i];
}

static bool is_word(int byte)
{
	return isalnum(byte) || byte == '_';
}

/* \d and its like; false: the letter stands for itself. */
static bool set_add_class(struct byte_set *set, char letter)
{
	struct byte_set class = { { 0 } };
	int kind = tolower((unsigned char)letter);
	if (kind != 'd' && kind != 's' && kind != 'w')
		return false;
	for (int byte = 0; byte < 128; byte++)
		if (kind == 'd' ? isdigit(byte) : kind == 's' ? isspace(byte) : is_word(byte))
			set_add(&class, (unsigned char)byte);
	if (isupper((unsigned char)letter))
		set_invert(&class);
	set_unite(set, &class);
	return true;
}

/* ---- from text to code ---- */

struct parser {
	struct step_pattern *out;
	const char *at;
	struct err *err;
};

static int refuse(struct parser *parser, const char *why)
{
	return err_set(parser->err, EINVAL, "%s at '%.32s'", why, parser->at);
}

static int emit(struct parser *parser, size_t where, enum op op, int a, int b)
{
	struct step_pattern *out = parser->out;
	if (out->length == STEP_PATTERN_CODE)
		return refuse(parser, "the pattern is too long");
	memmove(&out->code[where + 1], &out->code[where],
		(out->length - where) * sizeof(out->code[0]));
	out->code[where] = (struct step_instruction){ .op = op, .a = (int16_t)a, .b = (int16_t)b };
	out->length++;
	return 0;
}

static int append(struct parser *parser, enum op op, int a)
{
	return emit(parser, parser->out->length, op, a, 0);
}

static int append_set(struct parser *parser, const struct byte_set *set)
{
	struct step_pattern *out = parser->out;
	out->sets[out->set_count] = *set; /* one for each byte of the pattern at most */
	return append(parser, OP_SET, out->set_count++);
}

static unsigned char escaped(char letter)
{
	return letter == 't'   ? '\t'
	       : letter == 'n' ? '\n'
	       : letter == 'r' ? '\r'
			       : (unsigned char)letter;
}

/* One byte or class inside brackets; *ret_byte is -1 for a class. */
static int parse_member(struct parser *parser, struct byte_set *set, int *ret_byte)
{
	*ret_byte = -1;
	if (*parser->at == '\0')
		return refuse(parser, "']' is missing");
	if (*parser->at != '\\') {
		*ret_byte = (unsigned char)*parser->at++;
		return 0;
	}
	if (parser->at[1] == '\0')
		return refuse(parser, "nothing follows the backslash");
	if (!set_add_class(set, parser->at[1]))
		*ret_byte = escaped(parser->at[1]);
	parser->at += 2;
	return 0;
}

static int parse_brackets(struct parser *parser)
{
	struct byte_set set = { { 0 } };
	bool inverted = *++parser->at == '^';
	parser->at += inverted;
	for (bool first = true; first || *parser->at != ']'; first = false) {
		int from, to;
		int r = parse_member(parser, &set, &from);
		if (r < 0)
			return r;
		to = from;
		if (from >= 0 && parser->at[0] == '-' && parser->at[1] && parser->at[1] != ']') {
			parser->at++;
			r = parse_member(parser, &set, &to);
			if (r < 0)
				return r;
			if (to < from)
				return refuse(parser, "a range ends before it begins");
		}
		for (int byte = from; from >= 0 && byte <= to; byte++)
			set_add(&set, (unsigned char)byte);
	}
	parser->at++;
	if (inverted)
		set_invert(&set);
	return append_set(parser, &set);
}

static int parse_either(struct parser *parser);

static int parse_group(struct parser *parser)
{
	bool kept = strncmp(parser->at, "(?:", 3) != 0;
	int group = parser->out->group_count;
	if (kept && parser->at[1] == '?')
		return refuse(parser, "only (...) and (?:...) are known");
	if (kept && group == STEP_PATTERN_GROUPS)
		return refuse(parser, "a third group; write (?:...) for one without a number");
	parser->out->group_count += kept;
	parser->at += kept ? 1 : 3;
	int r = kept ? append(parser, OP_SAVE, 2 * group) : 0;
	if (r == 0)
		r = parse_either(parser);
	if (r == 0 && *parser->at != ')')
		r = refuse(parser, "')' is missing");
	if (r == 0 && kept)
		r = append(parser, OP_SAVE, 2 * group + 1);
	parser->at += r == 0;
	return r;
}

static int parse_escape(struct parser *parser)
{
	struct byte_set set = { { 0 } };
	if (parser->at[1] == '\0')
		return refuse(parser, "nothing follows the backslash");
	if (!set_add_class(&set, parser->at[1]))
		set_add(&set, escaped(parser->at[1]));
	parser->at += 2;
	return append_set(parser, &set);
}

static int parse_atom(struct parser *parser)
{
	struct byte_set set = { { 0 } };
	switch (*parser->at) {
	case '(':
		return parse_group(parser);
	case '[':
		return parse_brackets(parser);
	case '\\':
		return parse_escape(parser);
	case '*':
	case '+':
	case '?':
	case '{':
		return refuse(parser, "nothing that could be repeated");
	case '^':
	case '$':
		return append(parser, *parser->at++ == '^' ? OP_BEGIN : OP_END, 0);
	case '.':
		set_invert(&set);
		break;
	default:
		set_add(&set, (unsigned char)*parser->at);
	}
	parser->at++;
	return append_set(parser, &set);
}

/* An atom and its sign of repetition. */
static int parse_piece(struct parser *parser)
{
	int start = parser->out->length;
	int r = parse_atom(parser);
	char sign = *parser->at;
	int size = parser->out->length - start;
	if (r < 0)
		return r;
	if (sign == '{')
		return refuse(parser, "{...} is not known; write the part several times");
	if (sign != '*' && sign != '+' && sign != '?')
		return 0;
	parser->at++;
	if (sign == '+')
		return emit(parser, parser->out->length, OP_SPLIT, -size, 1);
	r = emit(parser, (size_t)start, OP_SPLIT, 1, size + 1 + (sign == '*'));
	return r == 0 && sign == '*' ? append(parser, OP_JUMP, -(size + 1)) : r;
}

static int parse_sequence(struct parser *parser)
{
	int r = 0;
	while (r == 0 && *parser->at && *parser->at != '|' && *parser->at != ')')
		r = parse_piece(parser);
	return r;
}

static int parse_either(struct parser *parser)
{
	int start = parser->out->length;
	int r = parse_sequence(parser);
	if (r < 0 || *parser->at != '|')
		return r;
	parser->at++;
	int size = parser->out->length - start;
	r = emit(parser, (size_t)start, OP_SPLIT, 1, size + 2);
	int jump = parser->out->length;
	if (r == 0)
		r = append(parser, OP_JUMP, 0);
	if (r == 0)
		r = parse_either(parser);
	if (r == 0)
		parser->out->code[jump].a = (int16_t)(parser->out->length - jump);
	return r;
}

/* ---- matching ---- */

struct thread {
	uint16_t at;
	uint16_t slots[SLOTS];
};

struct threads {
	struct thread items[STEP_PATTERN_CODE];
	size_t count;
	uint16_t seen[STEP_PATTERN_CODE]; /* generation + 1 in which an instruction was added */
};

struct place {
	size_t at, len;
	uint16_t generation;
};

/* Follows everything that takes no byte. No instruction is followed twice at one place. */
static void add_thread(const struct step_pattern *pattern, struct threads *threads,
		       const struct place *place, int at, struct thread thread)
{
	while (threads->seen[at] != place->generation) {
		const struct step_instruction *now = &pattern->code[at];
		threads->seen[at] = place->generation;
		switch ((enum op)now->op) {
		case OP_SET:
		case OP_MATCH:
			thread.at = (uint16_t)at;
			threads->items[threads->count++] = thread;
			return;
		case OP_BEGIN:
		case OP_END:
			if (place->at != (now->op == OP_BEGIN ? 0 : place->len))
				return;
			at++;
			break;
		case OP_SAVE:
			thread.slots[now->a] = (uint16_t)place->at;
			at++;
			break;
		case OP_SPLIT:
			add_thread(pattern, threads, place, at + now->a, thread);
			at += now->b;
			break;
		case OP_JUMP:
			at += now->a;
			break;
		}
	}
}

static struct thread fresh_thread(void)
{
	struct thread thread;
	memset(&thread, 0xff, sizeof(thread));
	return thread;
}

/* Where the next match can begin. */
static size_t skip(const struct step_pattern *pattern, const unsigned char *line, size_t at,
		   size_t len)
{
	while (pattern->skips && at < len && !set_has(&pattern->first, line[at]))
		at++;
	return at;
}

/* Runs every thread over the byte at `place`; true: *ret has the slots of a match, and the threads
 * behind it are dropped, because they matter less. */
static bool step_threads(const struct step_pattern *pattern, const struct threads *now,
			 struct threads *next, const unsigned char *line, const struct place *place,
			 struct thread *ret)
{
	struct place after = { place->at + 1, place->len, (uint16_t)(place->generation + 1) };
	next->count = 0;
	for (size_t i = 0; i < now->count; i++) {
		const struct step_instruction *code = &pattern->code[now->items[i].at];
		if (code->op == OP_MATCH) {
			*ret = now->items[i];
			return true;
		}
		if (place->at < place->len && set_has(&pattern->sets[code->a], line[place->at]))
			add_thread(pattern, next, &after, now->items[i].at + 1, now->items[i]);
	}
	return false;
}

static bool match(const struct step_pattern *pattern, const unsigned char *line, size_t len,
		  struct thread *ret)
{
	struct threads lists[2];
	struct threads *now = &lists[0], *next = &lists[1];
	memset(lists[0].seen, 0, sizeof(lists[0].seen));
	memset(lists[1].seen, 0, sizeof(lists[1].seen));
	now->count = 0;
	bool found = false;
	for (struct place place = { 0, len, 1 }; place.at <= len; place.at++, place.generation++) {
		if (now->count == 0 && found)
			break;
		if (now->count == 0)
			place.at = skip(pattern, line, place.at, len);
		if (!found)
			add_thread(pattern, now, &place, 0, fresh_thread());
		found = step_threads(pattern, now, next, line, &place, ret) || found;
		struct threads *swap = now;
		now = next;
		next = swap;
	}
	return found;
}

/* ---- */

/* The bytes with which a match can begin, by what the first step of a search waits for. */
static void find_first(struct step_pattern *pattern)
{
	struct threads threads;
	memset(threads.seen, 0, sizeof(threads.seen));
	threads.count = 0;
	struct place place = { 0, 0, 1 };
	add_thread(pattern, &threads, &place, 0, fresh_thread());
	pattern->skips = true;
	for (size_t i = 0; i < pattern->length; i++)
		if (pattern->code[i].op == OP_BEGIN || pattern->code[i].op == OP_END)
			pattern->skips = false;
	for (size_t i = 0; i < threads.count; i++) {
		const struct step_instruction *code = &pattern->code[threads.items[i].at];
		if (code->op == OP_MATCH)
			pattern->skips = false;
		else
			set_unite(&pattern->first, &pattern->sets[code->a]);
	}
}

int step_pattern_parse(struct step_pattern *ret_pattern, const char *text, struct err *err)
{
	struct step_pattern pattern = { .length = 0 };
	struct parser parser = { .out = &pattern, .at = text, .err = err };
	if (strlen(text) > STEP_PATTERN_MAX)
		return err_set(err, EINVAL, "a pattern has at most %d bytes", STEP_PATTERN_MAX);
	int r = parse_either(&parser);
	if (r < 0)
		return r;
	if (*parser.at)
		return refuse(&parser, "a ')' too many");
	if (pattern.group_count == 0)
		return err_set(err, EINVAL, "'%.64s' has no group for the number, such as (\\d+)",
			       text);
	r = append(&parser, OP_MATCH, 0);
	if (r < 0)
		return r;
	find_first(&pattern);
	*ret_pattern = pattern;
	return 0;
}

static bool number_of(const unsigned char *line, const struct thread *found, int group,
		      uint64_t *ret_number)
{
	uint16_t from = found->slots[2 * group], to = found->slots[2 * group + 1];
	char text[NUMBER_MAX];
	if (from == UNSET || to == UNSET || to - from >= NUMBER_MAX)
		return false;
	memcpy(text, line + from, (size_t)(to - from));
	text[to - from] = '\0';
	return str_to_u64(text, ret_number) == 0;
}

bool step_pattern_find(const struct step_pattern *pattern, const void *line, size_t len,
		       uint64_t *ret_step, uint64_t *ret_total)
{
	struct thread found;
	uint64_t step, total;
	if (!match(pattern, line, MIN(len, (size_t)STEP_PATTERN_LINE), &found) ||
	    !number_of(line, &found, 0, &step))
		return false;
	*ret_step = step;
	*ret_total = pattern->group_count > 1 && number_of(line, &found, 1, &total) ? total : 0;
	return true;
}
