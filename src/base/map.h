/* A hash map from byte strings to pointers. Keys are copied, values are borrowed. The hash is keyed
 * (SipHash-1-3), so that keys from a wire cannot be chosen to collide; a zero key is fine where the
 * keys are ours, and makes iteration order repeatable in simulations. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/util.h"

struct map_entry {
	struct map_entry *next;
	uint64_t hash;
	void *value;
	size_t key_len;
	char key[]; /* NUL-terminated for convenience; key_len does not count it */
};

struct map {
	struct map_entry **buckets;
	size_t bucket_count; /* a power of two, or 0 */
	size_t count;
	uint64_t hash_key[2];
};

#define MAP_INIT ((struct map){ .buckets = NULL })

void map_done(struct map *map); /* frees the entries; the values are the caller's */

void *map_get(const struct map *map, const void *key, size_t key_len); /* NULL if absent */
struct map_entry *map_find(const struct map *map, const void *key, size_t key_len);

/* Stores `value` under `key`, replacing; returns the entry, which stays where it is until
 * removed. */
struct map_entry *map_put(struct map *map, const void *key, size_t key_len, void *value);

/* Removes the key and returns its value, NULL if it was not there. */
void *map_remove(struct map *map, const void *key, size_t key_len);

/* All entries in bucket order. The body may remove the current entry, but add none. */
struct map_entry *map_first(const struct map *map);
struct map_entry *map_next(const struct map *map, const struct map_entry *entry);

#define map_foreach(it, map) \
	for (struct map_entry *it = map_first(map), *it##_next; \
	     it && ((it##_next = map_next((map), it)), true); it = it##_next)

uint64_t map_hash(const uint64_t key[2], const void *data, size_t len);

#endif
