#include "core/deal/files.h"

#include <string.h>

#include "base/str.h"

const char *files_name(const char *path)
{
	const char *mark = strstr(path, "/./");
	if (!mark)
		return path;
	const char *name = mark + strlen("/./");
	return name + strspn(name, "/");
}

bool files_name_ok(const char *name)
{
	const char *rest = name, *part;
	size_t len, last = 0;
	bool dot = false;
	if (*name == '/' || strlen(name) >= FILES_PATH_MAX)
		return false;
	while ((part = str_split(&rest, '/', &len))) {
		last = len;
		dot = len == 1 && *part == '.';
		if (len == 2 && memcmp(part, "..", 2) == 0)
			return false;
	}
	return last > 0 && !dot;
}

bool files_path_ok(const char *path)
{
	return strlen(path) < FILES_PATH_MAX && files_name_ok(files_name(path));
}
