#include "core/lines/named_template.h"

#include <string.h>

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_len(const char *text)
{
	if (!is_letter(text[0]))
		return 0;
	size_t len = 1;
	while (is_letter(text[len]) || (text[len] >= '0' && text[len] <= '9'))
		len++;
	return len;
}

static const char *find(const struct template_name *names, size_t count, const char *name,
			size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(names[i].name) == len && strncmp(names[i].name, name, len) == 0)
			return names[i].value;
	return NULL;
}

/* What the "$" at `text` stands for, and the length of its name; NULL: for itself. */
static const char *value_at(const char *text, const struct template_name *names, size_t count,
			    size_t *ret_len)
{
	*ret_len = 2;
	if (text[1] == '$')
		return "$";
	bool braced = text[1] == '{';
	const char *name = text + 1 + braced;
	size_t len = name_len(name);
	if (len == 0 || (braced && name[len] != '}'))
		return NULL;
	*ret_len = 1 + len + (braced ? 2 : 0);
	return find(names, count, name, len);
}

void template_render(const char *text, const struct template_name *names, size_t count,
		     struct buf *out)
{
	while (*text) {
		size_t plain = strcspn(text, "$");
		buf_append(out, text, plain);
		text += plain;
		if (!*text)
			break;
		size_t len;
		const char *value = value_at(text, names, count, &len);
		if (value) {
			buf_append_str(out, value);
			text += len;
		} else {
			buf_append_char(out, *text++);
		}
	}
}
