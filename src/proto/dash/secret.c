#include "proto/dash/secret.h"

#include <ctype.h>
#include <string.h>

#define NAME_MAX_SEEN 256

bool secret_is_name(const char *assignment)
{
	static const char *const words[] = {
		"TOKEN",  "SECRET", "PASSW", "CREDENTIAL", "PRIVATE",
		"APIKEY", "_KEY",   "AUTH",  "COOKIE",	   "SIGNATURE"
	};
	char name[NAME_MAX_SEEN] = { 0 };
	size_t len = strcspn(assignment, "=");
	for (size_t i = 0; i < MIN(len, sizeof(name) - 1); i++)
		name[i] = (char)toupper((unsigned char)assignment[i]);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}
