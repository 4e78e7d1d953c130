#include "sys/cgroup_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#define OCTAL_LEN 3

void cgroup_place_done(struct cgroup_place *place)
{
	free(place->mount);
	free(place->own);
	*place = CGROUP_PLACE_INIT;
}

/* mountinfo has blanks, tabs, newlines and backslashes as three octal digits. */
static char *unescape(const char *text, size_t len)
{
	struct buf out = BUF_INIT;
	for (size_t i = 0; i < len; i++) {
		bool escaped = text[i] == '\\' && len - i > OCTAL_LEN && text[i + 1] >= '0' &&
			       text[i + 1] <= '3';
		if (!escaped) {
			buf_append_char(&out, text[i]);
			continue;
		}
		int value = 0;
		for (size_t digit = 1; digit <= OCTAL_LEN; digit++)
			value = value * 8 + (text[i + digit] - '0');
		buf_append_char(&out, (char)value);
		i += OCTAL_LEN;
	}
	return buf_take_str(&out);
}

/* Is `word` one of the comma-separated words of `list`? */
static bool list_has(const char *list, const char *word)
{
	size_t len;
	for (const char *piece; (piece = str_split(&list, ',', &len));)
		if (strlen(word) == len && strncmp(piece, word, len) == 0)
			return true;
	return false;
}

/* The controller of a hierarchy of v1. */
static const char *controller(enum cgroup_kind kind)
{
	return kind == CGROUP_V1_MEMORY ? "memory" : "cpu";
}

/* "TYPE SOURCE SUPER" */
static bool is_wanted(enum cgroup_kind kind, const char *tail)
{
	char type[64], super[512];
	if (sscanf(tail, "%63s %*s %511s", type, super) != 2)
		return false;
	if (kind == CGROUP_V2)
		return str_eq(type, "cgroup2");
	return str_eq(type, "cgroup") && list_has(super, controller(kind));
}

/* A line of mountinfo: "ID PARENT DEV ROOT POINT OPTIONS [TAGS] - TYPE SOURCE SUPER". `ret_root` is
 * the part of the hierarchy that is mounted. */
static bool parse_mount(enum cgroup_kind kind, const char *line, char **ret_root, char **ret_point)
{
	const char *tail = strstr(line, " - ");
	if (!tail || !is_wanted(kind, tail + 3))
		return false;
	const char *rest = line, *word = NULL, *root = NULL;
	size_t len = 0, root_len = 0;
	for (int field = 0; field < 5 && (word = str_split(&rest, ' ', &len)); field++)
		if (field == 3)
			root = word, root_len = len;
	if (!root || !word || word[0] != '/')
		return false;
	*ret_root = unescape(root, root_len);
	*ret_point = unescape(word, len);
	return true;
}

/* Our path in the hierarchy, from a line "N:CONTROLLERS:/path"; that of v2 is "0::/path". */
static char *own_path(enum cgroup_kind kind, const char *line)
{
	const char *controllers = strchr(line, ':');
	const char *path = controllers ? strchr(++controllers, ':') : NULL;
	if (!path)
		return NULL;
	AUTO_FREE char *list = mem_strndup(controllers, (size_t)(path - controllers));
	bool wanted = kind == CGROUP_V2 ? !*list : list_has(list, controller(kind));
	return wanted ? mem_strdup(path + 1) : NULL;
}

/* Our path below the mount point, without the part that the mount already includes; NULL: the mount
 * shows another part of the hierarchy. */
static const char *below_mount(const char *path, const char *root)
{
	size_t len = str_eq(root, "/") ? 0 : strlen(root);
	if (strncmp(path, root, len) != 0 || (path[len] && path[len] != '/'))
		return NULL;
	return str_eq(path + len, "/") ? "" : path + len;
}

bool cgroup_find(enum cgroup_kind kind, const char *mountinfo, const char *membership,
		 struct cgroup_place *ret_place)
{
	AUTO_FREE char *root = NULL, *point = NULL, *path = NULL;
	size_t len;
	for (const char *line; !point && (line = str_split(&mountinfo, '\n', &len));) {
		AUTO_FREE char *copy = mem_strndup(line, len);
		parse_mount(kind, copy, &root, &point);
	}
	for (const char *line; !path && (line = str_split(&membership, '\n', &len));) {
		AUTO_FREE char *copy = mem_strndup(line, len);
		path = own_path(kind, copy);
	}
	if (!point || !path)
		return false;
	const char *below = below_mount(path, root);
	ret_place->own = below ? mem_printf("%s%s", point, below) : NULL;
	ret_place->mount = point;
	point = NULL;
	return true;
}
