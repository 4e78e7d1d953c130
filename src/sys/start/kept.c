#include "sys/start/kept.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

void kept_close(struct kept *kept)
{
	for (int i = 0; i < 3; i++)
		fd_close(&kept->stdio[i]);
}

void kept_put(struct kept *kept, const int stdio[3], int *fds, char *const *envp)
{
	size_t count = 0;
	kept_close(kept);
	for (int i = 0; i < 3; i++)
		kept->stdio[i] = stdio[i] >= 0 ? fd_take(fds++) : stdio[i];
	buf_clear(&kept->env);
	for (; envp[count]; count++)
		buf_append(&kept->env, envp[count], strlen(envp[count]) + 1);
	buf_clear(&kept->pointers);
	char *at = (char *)buf_data(&kept->env);
	for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
		buf_append(&kept->pointers, &at, sizeof(at));
	buf_append(&kept->pointers, &(char *){ NULL }, sizeof(char *));
}

int kept_get(const struct kept *kept, const int stdio[3], struct spawn_spec *spec)
{
	if (buf_len(&kept->pointers) == 0)
		return -EPROTO;
	spec->envp = (char *const *)(void *)buf_data(&kept->pointers);
	for (int i = 0; i < 3; i++)
		spec->stdio[i] = kept->stdio[i] == SPAWN_INHERIT ? stdio[i] : kept->stdio[i];
	return 0;
}

static bool is_empty_file(int fd)
{
	struct stat info;
	return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0;
}

bool kept_is_fresh(const struct kept *kept)
{
	for (int i = 1; i < 3; i++)
		if (kept->stdio[i] == SPAWN_INHERIT ||
		    (kept->stdio[i] >= 0 && !is_empty_file(kept->stdio[i])))
			return false;
	return buf_len(&kept->pointers) > 0;
}

void kept_put_spot(struct kept *kept, uint64_t id, const struct spawn_spec *spec)
{
	kept->id = id;
	kept->mem_mode = spec->mem_mode;
	buf_clear(&kept->cpus);
	buf_clear(&kept->mem_nodes);
	buf_append(&kept->cpus, spec->cpus, spec->cpus_size);
	buf_append(&kept->mem_nodes, spec->mem_nodes, spec->mem_nodes_size);
}

void kept_get_spot(const struct kept *kept, uint64_t *ret_id, struct spawn_spec *spec)
{
	*ret_id = kept->id;
	spec->mem_mode = kept->mem_mode;
	spec->cpus_size = buf_len(&kept->cpus);
	spec->cpus = spec->cpus_size ? (const cpu_set_t *)(void *)buf_data(&kept->cpus) : NULL;
	spec->mem_nodes_size = buf_len(&kept->mem_nodes);
	spec->mem_nodes = (const unsigned long *)(void *)buf_data(&kept->mem_nodes);
}
