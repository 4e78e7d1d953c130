/* Expands a host list: one name a line. usage: hostlist LIST */
#include <stdio.h>

#include "core/host/hostlist.h"

int main(int argc, char **argv)
{
	AUTO(strv_done) struct strv names = STRV_INIT;
	struct err err = ERR_INIT;
	uint32_t count;
	if (argc != 2 || hostlist_expand(argv[1], SIZE_MAX, &names, &count, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	for (size_t i = 0; i < names.count; i++)
		puts(names.items[i]);
	return 0;
}
