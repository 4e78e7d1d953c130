/* The hosts of a job that one terminal starts: `--hosts=a,b:4` and the lines of a host file.
 *
 * A host file is mpirun's: a host a line, "slots=N" after it, comments from "#" on. MPICH's
 * "host:N" means the same. A host that is named again gets more slots. What ssh would take for an
 * option, or a shell for something else than a word, is not a name. */
#ifndef CORE_FLEET_HOSTFILE_H
#define CORE_FLEET_HOSTFILE_H

#include "base/err.h"
#include "base/map.h"

#define HOSTS_MAX 65536
#define HOST_NAME_TEXT_MAX 256 /* with a user in front, and its NUL */
#define HOST_SLOTS_MAX 65536
#define HOST_FILE_MAX ((size_t)16 << 20)

struct host_entry {
	char name[HOST_NAME_TEXT_MAX]; /* for ssh: a name, an alias, user@name, an address */
	uint32_t slots;		       /* 0: not said */
};

struct hostfile {
	struct host_entry *items;
	size_t count, cap;
	struct map by_name;
};

#define HOSTFILE_INIT ((struct hostfile){ .items = NULL, .by_name = MAP_INIT })

void hostfile_done(struct hostfile *list);

/* "a,b:4,user@c,[::1]:2". Adds to the list; -EINVAL. */
int hostfile_add_list(struct hostfile *list, const char *text, struct err *err);

/* The content of a host file. Adds to the list; -EINVAL names the line. */
int hostfile_add_text(struct hostfile *list, const char *text, size_t len, struct err *err);

#endif
