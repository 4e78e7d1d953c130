#include "core/worker/deadlines.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

struct deadline_owner {
	struct deadline *first;
	size_t count;
};

/* A key is the process number followed by the scope. */
struct key {
	size_t len;
	char *bytes;
	char small[256];
};

static void key_done(struct key *key)
{
	if (key->bytes != key->small)
		free(key->bytes);
}

static void key_init(struct key *key, uint64_t process, const char *scope)
{
	size_t scope_len = strlen(scope);
	key->len = sizeof(process) + scope_len;
	key->bytes = key->len <= sizeof(key->small) ? key->small : NEW_ARRAY(char, key->len);
	memcpy(key->bytes, &process, sizeof(process));
	memcpy(key->bytes + sizeof(process), scope, scope_len);
}

static struct deadline_owner *owner_find(const struct deadlines *deadlines, uint64_t process)
{
	return map_get(&deadlines->by_process, &process, sizeof(process));
}

static struct deadline_owner *owner_get(struct deadlines *deadlines, uint64_t process)
{
	struct deadline_owner *owner = owner_find(deadlines, process);
	if (!owner) {
		owner = NEW(struct deadline_owner);
		map_put(&deadlines->by_process, &process, sizeof(process), owner);
	}
	return owner;
}

static void owner_link(struct deadline_owner *owner, struct deadline *deadline)
{
	deadline->owner = owner;
	deadline->next = owner->first;
	if (owner->first)
		owner->first->prev = deadline;
	owner->first = deadline;
	owner->count++;
}

static void owner_unlink(struct deadlines *deadlines, struct deadline *deadline)
{
	struct deadline_owner *owner = deadline->owner;
	if (deadline->prev)
		deadline->prev->next = deadline->next;
	else
		owner->first = deadline->next;
	if (deadline->next)
		deadline->next->prev = deadline->prev;
	if (--owner->count == 0) {
		map_remove(&deadlines->by_process, &deadline->process, sizeof(deadline->process));
		free(owner);
	}
}

/* Removes it from heap, key and owner; the caller keeps the memory. */
static void detach(struct deadlines *deadlines, struct deadline *deadline)
{
	heap_remove(&deadlines->heap, &deadline->node);
	struct map_entry *entry = deadline->entry;
	if (deadline->outer)
		deadline->outer->inner = deadline->inner;
	if (deadline->inner)
		deadline->inner->outer = deadline->outer;
	else if (deadline->outer)
		entry->value = deadline->outer;
	else
		map_remove(&deadlines->by_key, entry->key, entry->key_len);
	owner_unlink(deadlines, deadline);
}

void deadline_free(struct deadline *deadline)
{
	if (!deadline)
		return;
	free((char *)deadline->scope);
	free(deadline);
}

void deadlines_done(struct deadlines *deadlines)
{
	for (struct heap_node *node; (node = heap_top(&deadlines->heap));) {
		struct deadline *deadline = container_of(node, struct deadline, node);
		detach(deadlines, deadline);
		deadline_free(deadline);
	}
	heap_done(&deadlines->heap);
	map_done(&deadlines->by_key);
	map_done(&deadlines->by_process);
}

static struct deadline *push(struct deadlines *deadlines, uint64_t process, const char *scope,
			     const struct key *key)
{
	struct deadline *deadline = NEW(struct deadline);
	deadline->process = process;
	deadline->scope = mem_strdup(scope);
	deadline->entry = map_find(&deadlines->by_key, key->bytes, key->len);
	if (deadline->entry) {
		deadline->outer = deadline->entry->value;
		deadline->outer->inner = deadline;
		deadline->entry->value = deadline;
	} else {
		deadline->entry = map_put(&deadlines->by_key, key->bytes, key->len, deadline);
	}
	owner_link(owner_get(deadlines, process), deadline);
	return deadline;
}

struct deadline *deadlines_acquire(struct deadlines *deadlines, uint64_t process, const char *scope,
				   enum deadline_mode mode, int signal, uint64_t deadline_ns,
				   uint64_t now_ns)
{
	AUTO(key_done) struct key key;
	key_init(&key, process, scope);
	struct deadline *deadline = map_get(&deadlines->by_key, key.bytes, key.len);
	if (!deadline || mode == DEADLINE_NEST) {
		const struct deadline_owner *owner = owner_find(deadlines, process);
		if (owner && owner->count >= DEADLINES_PER_PROCESS_MAX)
			return NULL;
		deadline = push(deadlines, process, scope, &key);
	}
	deadline->armed_ns = now_ns;
	deadline->deadline_ns = deadline_ns;
	deadline->signal = signal;
	heap_update(&deadlines->heap, &deadline->node, deadline_ns);
	deadlines->armed_total++;
	return deadline;
}

void deadlines_pause(struct deadlines *deadlines, uint64_t pause_ns)
{
	/* All keys move alike, so the heap stays one. */
	for (size_t i = 0; i < deadlines->heap.count; i++) {
		struct heap_node *node = deadlines->heap.nodes[i];
		struct deadline *deadline = container_of(node, struct deadline, node);
		node->key = ns_add(node->key, pause_ns);
		deadline->deadline_ns = ns_add(deadline->deadline_ns, pause_ns);
	}
}

bool deadlines_release(struct deadlines *deadlines, uint64_t process, const char *scope)
{
	AUTO(key_done) struct key key;
	key_init(&key, process, scope);
	struct deadline *deadline = map_get(&deadlines->by_key, key.bytes, key.len);
	if (!deadline)
		return false;
	detach(deadlines, deadline);
	deadline_free(deadline);
	deadlines->released_total++;
	return true;
}

size_t deadlines_forget(struct deadlines *deadlines, uint64_t process)
{
	size_t count = 0;
	for (struct deadline_owner *owner; (owner = owner_find(deadlines, process)); count++) {
		struct deadline *deadline = owner->first;
		detach(deadlines, deadline);
		deadline_free(deadline);
	}
	return count;
}

uint64_t deadlines_next(const struct deadlines *deadlines)
{
	const struct heap_node *top = heap_top(&deadlines->heap);
	return top ? top->key : NS_NEVER;
}

struct deadline *deadlines_expire(struct deadlines *deadlines, uint64_t now_ns)
{
	/* NS_NEVER is a deadline too: only its release ends such a timer. */
	if (deadlines_next(deadlines) > now_ns || deadlines_next(deadlines) == NS_NEVER)
		return NULL;
	struct deadline *deadline = container_of(heap_top(&deadlines->heap), struct deadline, node);
	detach(deadlines, deadline);
	deadline->next = deadline->prev = NULL;
	deadlines->expired_total++;
	return deadline;
}

size_t deadlines_count(const struct deadlines *deadlines)
{
	return deadlines->heap.count;
}

const struct deadline *deadlines_of(const struct deadlines *deadlines, uint64_t process)
{
	const struct deadline_owner *owner = owner_find(deadlines, process);
	return owner ? owner->first : NULL;
}

const struct deadline *deadlines_of_next(const struct deadline *deadline)
{
	return deadline->next;
}
