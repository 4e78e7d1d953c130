#include "base/path.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

bool path_is_program(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

char *path_search(const char *name, const char *path)
{
	const char *rest = path ? path : getenv("PATH"), *dir;
	size_t len;
	if (!rest)
		rest = PATH_DEFAULT;
	while ((dir = str_split(&rest, ':', &len))) {
		char *file = mem_printf("%.*s/%s", len ? (int)len : 1, len ? dir : ".", name);
		if (path_is_program(file))
			return file;
		free(file);
	}
	return NULL;
}
