#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAP_MIN_BUCKETS 16

static inline uint64_t rotl(uint64_t x, int bits)
{
	return (x << bits) | (x >> (64 - bits));
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

uint64_t map_hash(const uint64_t key[2], const void *data, size_t len)
{
	uint64_t v[4] = { key[0] ^ 0x736f6d6570736575ull, key[1] ^ 0x646f72616e646f6dull,
			  key[0] ^ 0x6c7967656e657261ull, key[1] ^ 0x7465646279746573ull };
	const unsigned char *p = data;
	uint64_t word;

	for (size_t left = len; left >= 8; left -= 8, p += 8) {
		memcpy(&word, p, 8);
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	word = (uint64_t)len << 56;
	for (size_t i = 0; i < len % 8; i++)
		word |= (uint64_t)p[i] << (8 * i);
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static struct map_entry **bucket_of(const struct map *map, uint64_t hash)
{
	return &map->buckets[hash & (map->bucket_count - 1)];
}

static void grow(struct map *map)
{
	size_t old_count = map->bucket_count;
	struct map_entry **old = map->buckets;

	map->bucket_count = old_count ? old_count * 2 : MAP_MIN_BUCKETS;
	map->buckets = mem_alloc(map->bucket_count * sizeof(struct map_entry *));
	for (size_t i = 0; i < old_count; i++) {
		for (struct map_entry *entry = old[i], *next; entry; entry = next) {
			next = entry->next;
			struct map_entry **bucket = bucket_of(map, entry->hash);
			entry->next = *bucket;
			*bucket = entry;
		}
	}
	free(old);
}

void map_done(struct map *map)
{
	map_foreach(entry, map) free(entry);
	free(map->buckets);
	map->buckets = NULL;
	map->bucket_count = map->count = 0;
}

/* The link that points to the entry, or to the NULL where it would be. */
static struct map_entry **find_link(const struct map *map, uint64_t hash, const void *key,
				    size_t len)
{
	struct map_entry **link = bucket_of(map, hash);
	while (*link && ((*link)->hash != hash || (*link)->key_len != len ||
			 memcmp((*link)->key, key, len) != 0))
		link = &(*link)->next;
	return link;
}

struct map_entry *map_find(const struct map *map, const void *key, size_t key_len)
{
	if (map->count == 0)
		return NULL;
	return *find_link(map, map_hash(map->hash_key, key, key_len), key, key_len);
}

void *map_get(const struct map *map, const void *key, size_t key_len)
{
	struct map_entry *entry = map_find(map, key, key_len);
	return entry ? entry->value : NULL;
}

struct map_entry *map_put(struct map *map, const void *key, size_t key_len, void *value)
{
	if (map->count >= map->bucket_count)
		grow(map);

	uint64_t hash = map_hash(map->hash_key, key, key_len);
	struct map_entry **link = find_link(map, hash, key, key_len);
	if (!*link) {
		struct map_entry *entry = mem_alloc(sizeof(*entry) + key_len + 1);
		entry->hash = hash;
		entry->key_len = key_len;
		if (key_len > 0)
			memcpy(entry->key, key, key_len);
		*link = entry;
		map->count++;
	}
	(*link)->value = value;
	return *link;
}

void *map_remove(struct map *map, const void *key, size_t key_len)
{
	if (map->count == 0)
		return NULL;
	struct map_entry **link =
		find_link(map, map_hash(map->hash_key, key, key_len), key, key_len);
	struct map_entry *entry = *link;
	if (!entry)
		return NULL;
	void *value = entry->value;
	*link = entry->next;
	map->count--;
	free(entry);
	return value;
}

static struct map_entry *first_from(const struct map *map, size_t bucket)
{
	for (; bucket < map->bucket_count; bucket++)
		if (map->buckets[bucket])
			return map->buckets[bucket];
	return NULL;
}

struct map_entry *map_first(const struct map *map)
{
	return first_from(map, 0);
}

struct map_entry *map_next(const struct map *map, const struct map_entry *entry)
{
	if (entry->next)
		return entry->next;
	return first_from(map, (entry->hash & (map->bucket_count - 1)) + 1);
}
