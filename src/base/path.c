#include "base/path.h"

#include <libgen.h>
#include <limits.h>
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

char *path_libexec(const char *name)
{
	static const struct {
		bool from_us;
		const char *dir;
	} places[] = {
		{ true, "/libexec/" },
		{ true, "/../libexec/muster/" },
		{ false, MUSTER_LIBEXEC "/" },
	};
	char self[PATH_MAX] = "";
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		self[0] = '\0';
	const char *dir = dirname(self);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		AUTO_FREE char *path =
			mem_printf("%s%s%s", places[i].from_us ? dir : "", places[i].dir, name);
		if (access(path, X_OK) == 0)
			return mem_strdup(path);
	}
	return mem_strdup(name);
}
