#include "proto/shell.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static bool is_safe(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("-_.+/", c));
}

static bool all_safe(const char *text)
{
	for (; *text; text++)
		if (!is_safe(*text))
			return false;
	return true;
}

void shell_quote(struct buf *out, const char *text)
{
	if (!*text) {
		buf_append_str(out, "''");
		return;
	}
	if (all_safe(text)) {
		buf_append_str(out, text);
		return;
	}
	AUTO(buf_done) struct buf quoted = BUF_INIT;
	buf_append_char(&quoted, '\'');
	for (; *text; text++) {
		if (*text == '\'')
			buf_append_str(&quoted, "'\"'\"'");
		else
			buf_append_char(&quoted, *text);
	}
	buf_append_char(&quoted, '\'');
	/* An empty pair at either end is not needed. */
	const char *whole = buf_str(&quoted);
	size_t skip = str_starts(whole, "''") ? 2 : 0;
	size_t tail = str_ends(whole, "''") ? 2 : 0;
	buf_append(out, whole + skip, buf_len(&quoted) - skip - tail);
}

void shell_join(struct buf *out, char *const *argv)
{
	for (size_t i = 0; argv[i]; i++) {
		if (i > 0)
			buf_append_char(out, ' ');
		shell_quote(out, argv[i]);
	}
}

/* Words that mean something else to a shell than "run this program". */
static bool is_shell_word(const char *word)
{
	static const char *const words[] = {
		".",	    ":",      "alias",	"bg",	"break",  "case",   "cd",	"command",
		"continue", "do",     "done",	"elif", "else",	  "esac",   "eval",	"exec",
		"exit",	    "export", "fc",	"fg",	"fi",	  "for",    "function", "getopts",
		"hash",	    "if",     "in",	"jobs", "kill",	  "let",    "local",	"read",
		"readonly", "return", "select", "set",	"shift",  "source", "test",	"then",
		"time",	    "times",  "trap",	"type", "ulimit", "umask",  "unalias",	"unset",
		"until",    "wait",   "while",
	};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(words[i], word))
			return true;
	return false;
}

bool shell_split_plain(const char *line, struct strv *ret_argv)
{
	for (const char *p = line; *p; p++)
		if (!is_safe(*p) && !strchr(" \t,:@=%", *p))
			return false;
	size_t first = strspn(line, " \t");
	size_t word_len = strcspn(line + first, " \t");
	/* "A=1 program" sets a variable. */
	if (word_len == 0 || memchr(line + first, '=', word_len))
		return false;
	AUTO_FREE char *program = mem_strndup(line + first, word_len);
	if (is_shell_word(program))
		return false;
	for (const char *p = line; *(p += strspn(p, " \t"));) {
		size_t len = strcspn(p, " \t");
		strv_take(ret_argv, mem_strndup(p, len));
		p += len;
	}
	return true;
}
/* Where "&&" is outside quotes; NULL: nowhere before the end of the first command. */
static const char *find_and(const char *line)
{
	char quote = 0;
	for (const char *p = line; *p; p++) {
		if (*p == '\\' && quote != '\'' && p[1])
			p++;
		else if (quote)
			quote = *p == quote ? 0 : quote;
		else if (*p == '\'' || *p == '"')
			quote = *p;
		else if (str_starts(p, "&&"))
			return p;
		else if (strchr(";|&\n", *p))
			return NULL;
	}
	return NULL;
}

size_t shell_source_len(const char *line)
{
	size_t len = 0;
	const char *p = line;
	while (str_starts(p, ". ") || str_starts(p, "source ")) {
		const char *end = find_and(p);
		if (!end)
			break;
		len = (size_t)(end - line);
		p = end + strlen("&&");
		p += strspn(p, " \t");
	}
	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	return len;
}

char *shell_program(const char *line, const char *source, char *const *argv)
{
	if (!line)
		return mem_strdup(argv && argv[0] ? argv[0] : "");
	line += source && str_starts(line, source) ? strlen(source) : 0;
	line += strspn(line, " \t&");
	return mem_strndup(line, strcspn(line, " \t"));
}
