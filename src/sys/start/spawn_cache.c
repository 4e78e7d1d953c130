#include "sys/start/spawn_cache.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

void spawn_cache_close(struct spawn_cache *cache)
{
	for (int i = 0; i < 3; i++)
		fd_close(&cache->stdio[i]);
}

void spawn_cache_put(struct spawn_cache *cache, const int stdio[3], int *fds, char *const *envp)
{
	size_t count = 0;
	spawn_cache_close(cache);
	for (int i = 0; i < 3; i++)
		cache->stdio[i] = stdio[i] >= 0 ? fd_take(fds++) : stdio[i];
	buf_clear(&cache->env);
	for (; envp[count]; count++)
		buf_append(&cache->env, envp[count], strlen(envp[count]) + 1);
	buf_clear(&cache->pointers);
	char *at = (char *)buf_data(&cache->env);
	for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
		buf_append(&cache->pointers, &at, sizeof(at));
	buf_append(&cache->pointers, &(char *){ NULL }, sizeof(char *));
}

int spawn_cache_get(const struct spawn_cache *cache, const int stdio[3], struct spawn_spec *spec)
{
	if (buf_len(&cache->pointers) == 0)
		return -EPROTO;
	spec->envp = (char *const *)(void *)buf_data(&cache->pointers);
	for (int i = 0; i < 3; i++)
		spec->stdio[i] = cache->stdio[i] == SPAWN_INHERIT ? stdio[i] : cache->stdio[i];
	return 0;
}

static bool is_empty_file(int fd)
{
	struct stat info;
	return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0;
}

bool spawn_cache_is_fresh(const struct spawn_cache *cache)
{
	for (int i = 1; i < 3; i++)
		if (cache->stdio[i] == SPAWN_INHERIT ||
		    (cache->stdio[i] >= 0 && !is_empty_file(cache->stdio[i])))
			return false;
	return buf_len(&cache->pointers) > 0;
}

void spawn_cache_put_spot(struct spawn_cache *cache, uint64_t id, const struct spawn_spec *spec)
{
	cache->id = id;
	cache->mem_mode = spec->mem_mode;
	buf_clear(&cache->cpus);
	buf_clear(&cache->mem_nodes);
	buf_append(&cache->cpus, spec->cpus, spec->cpus_size);
	buf_append(&cache->mem_nodes, spec->mem_nodes, spec->mem_nodes_size);
}

void spawn_cache_get_spot(const struct spawn_cache *cache, uint64_t *ret_id,
			  struct spawn_spec *spec)
{
	*ret_id = cache->id;
	spec->mem_mode = cache->mem_mode;
	spec->cpus_size = buf_len(&cache->cpus);
	spec->cpus = spec->cpus_size ? (const cpu_set_t *)(void *)buf_data(&cache->cpus) : NULL;
	spec->mem_nodes_size = buf_len(&cache->mem_nodes);
	spec->mem_nodes = (const unsigned long *)(void *)buf_data(&cache->mem_nodes);
}
