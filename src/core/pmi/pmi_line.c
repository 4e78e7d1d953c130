#include "core/pmi/pmi_private.h"

#include "base/str.h"

static struct bytes first_word(struct bytes line)
{
	size_t len = 0;
	while (len < line.len && line.data[len] != ' ')
		len += line.data[len] == '\\' && len + 1 < line.len ? 2 : 1;
	return bytes_of(line.data, len);
}

static struct bytes after(struct bytes line, size_t len)
{
	while (len < line.len && line.data[len] == ' ')
		len++;
	return bytes_of(line.data + len, line.len - len);
}

/* What follows "name=", to the end of the line. */
static bool find(struct bytes line, const char *name, struct bytes *ret_rest)
{
	size_t name_len = strlen(name);
	for (line = after(line, 0); line.len;) {
		struct bytes word = first_word(line);
		if (word.len > name_len && word.data[name_len] == '=' &&
		    memcmp(word.data, name, name_len) == 0) {
			*ret_rest = bytes_of(word.data + name_len + 1, line.len - name_len - 1);
			return true;
		}
		line = after(line, word.len);
	}
	return false;
}

bool pmi_line_rest(struct bytes line, const char *name, struct bytes *ret_value)
{
	return find(line, name, ret_value);
}

bool pmi_line_get(struct bytes line, const char *name, struct bytes *ret_value)
{
	struct bytes rest;
	if (!find(line, name, &rest))
		return false;
	*ret_value = first_word(rest);
	return true;
}

bool pmi_line_number(struct bytes line, const char *name, int64_t *ret_number)
{
	struct bytes value;
	char text[24];
	if (!pmi_line_get(line, name, &value) || value.len >= sizeof(text))
		return false;
	memcpy(text, value.data, value.len);
	text[value.len] = '\0';
	return str_to_i64(text, ret_number) == 0;
}
