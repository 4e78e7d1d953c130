#include "core/store_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* The cost of a name beyond its bytes and value: its slot, map entry and bucket, and malloc's
 * overhead. */
#define SLOT_COST (sizeof(struct slot) + sizeof(struct map_entry) + 32)
#define NUMBER_TEXT_MAX 24

/* Everything about one name: its value, its queue and its waiters. Exists while it has any of
 * them. */
struct slot {
	struct map_entry *entry; /* its name */
	bool present;
	unsigned char *data;
	size_t len, cap;
	struct list queue; /* of struct item */
	size_t queue_len;
	struct list waits; /* of struct store_wait */
};

struct item {
	struct list link;
	size_t len;
	unsigned char data[];
};

/* One waiter that waits for one name. */
struct store_wait {
	struct list link; /* in slot->waits */
	struct slot *slot;
	struct store_waiter *waiter;
};

/* ---- memory ---- */

static int reserve(const struct store_table *table, size_t more, struct err *err)
{
	if (more <= table->bytes_max && table->bytes <= table->bytes_max - more)
		return 0;
	return err_set(err, ENOSPC,
		       "the store holds %zu bytes and may not hold %zu more (limit %zu)",
		       table->bytes, more, table->bytes_max);
}

void store_table_init(struct store_table *table, size_t bytes_max, const uint64_t hash_key[2])
{
	*table = (struct store_table){ .slots = MAP_INIT, .bytes_max = bytes_max };
	table->slots.hash_key[0] = hash_key[0];
	table->slots.hash_key[1] = hash_key[1];
	list_init(&table->released);
}

static void free_items(struct slot *slot)
{
	for (struct list *link; (link = list_shift(&slot->queue));)
		free(list_entry(link, struct item, link));
}

void store_table_done(struct store_table *table)
{
	map_foreach(entry, &table->slots)
	{
		struct slot *slot = entry->value;
		for (struct list *link; (link = list_shift(&slot->waits));) {
			struct store_waiter *waiter =
				list_entry(link, struct store_wait, link)->waiter;
			if (--waiter->missing == 0) {
				free(waiter->waits);
				waiter->waits = NULL;
			}
		}
		free_items(slot);
		free(slot->data);
		free(slot);
	}
	map_done(&table->slots);
	while (store_table_next_released(table))
		;
	table->key_count = table->bytes = 0;
}

static struct slot *find(const struct store_table *table, struct bytes key)
{
	return map_get(&table->slots, key.data, key.len);
}

static struct slot *find_or_add(struct store_table *table, struct bytes key)
{
	struct slot *slot = find(table, key);
	if (slot)
		return slot;
	slot = NEW(struct slot);
	list_init(&slot->queue);
	list_init(&slot->waits);
	slot->entry = map_put(&table->slots, key.data, key.len, slot);
	table->bytes += SLOT_COST + key.len;
	return slot;
}

/* The most that a change of `key` by `more` bytes can cost. */
static int reserve_slot(const struct store_table *table, const struct slot *slot, struct bytes key,
			size_t more, struct err *err)
{
	return reserve(table, more + (slot ? 0 : SLOT_COST + key.len), err);
}

static void drop_if_unused(struct store_table *table, struct slot *slot)
{
	if (slot->present || slot->queue_len > 0 || !list_empty(&slot->waits))
		return;
	table->bytes -= SLOT_COST + slot->entry->key_len;
	map_remove(&table->slots, slot->entry->key, slot->entry->key_len);
	free(slot);
}

/* ---- waiting ---- */

void store_waiter_init(struct store_waiter *waiter)
{
	*waiter = (struct store_waiter){ .waits = NULL };
	list_init(&waiter->released);
}

bool store_waiter_busy(const struct store_waiter *waiter)
{
	return waiter->waits || !list_empty(&waiter->released);
}

static void start_waits(struct store_table *table, struct store_waiter *waiter, size_t count)
{
	waiter->waits = NEW_ARRAY(struct store_wait, count);
	waiter->count = count;
	waiter->missing = 0;
	table->bytes += count * sizeof(struct store_wait);
}

static void wait_for(struct store_waiter *waiter, struct slot *slot)
{
	struct store_wait *wait = &waiter->waits[waiter->missing++];
	wait->slot = slot;
	wait->waiter = waiter;
	list_append(&slot->waits, &wait->link);
}

static void end_waits(struct store_table *table, struct store_waiter *waiter)
{
	table->bytes -= waiter->count * sizeof(struct store_wait);
	free(waiter->waits);
	waiter->waits = NULL;
	waiter->count = waiter->missing = 0;
}

/* Ends the first wait for this slot; false if there was none. */
static bool release_one(struct store_table *table, struct slot *slot)
{
	struct list *link = list_shift(&slot->waits);
	if (!link)
		return false;
	struct store_waiter *waiter = list_entry(link, struct store_wait, link)->waiter;
	if (--waiter->missing == 0) {
		end_waits(table, waiter);
		list_append(&table->released, &waiter->released);
	}
	return true;
}

static void release_all(struct store_table *table, struct slot *slot)
{
	while (release_one(table, slot))
		;
}

static bool slot_ready(const struct slot *slot)
{
	return slot && (slot->present || slot->queue_len > 0);
}

int store_table_wait(struct store_table *table, struct store_waiter *waiter,
		     const struct bytes *keys, size_t count, struct err *err)
{
	assert(!store_waiter_busy(waiter));
	size_t missing = 0, cost = 0;
	for (size_t i = 0; i < count; i++) {
		const struct slot *slot = find(table, keys[i]);
		if (slot_ready(slot))
			continue;
		missing++;
		cost += sizeof(struct store_wait) + (slot ? 0 : SLOT_COST + keys[i].len);
	}
	if (missing == 0)
		return 1;
	int r = reserve(table, cost, err);
	if (r < 0)
		return r;
	start_waits(table, waiter, missing);
	for (size_t i = 0; i < count; i++) {
		struct slot *slot = find_or_add(table, keys[i]);
		if (!slot_ready(slot))
			wait_for(waiter, slot);
	}
	return 0;
}

void store_table_cancel(struct store_table *table, struct store_waiter *waiter)
{
	list_unlink(&waiter->released);
	if (!waiter->waits)
		return;
	for (size_t i = 0; i < waiter->count; i++) {
		struct store_wait *wait = &waiter->waits[i];
		if (list_empty(&wait->link))
			continue; /* that name exists already; its slot may be gone */
		list_unlink(&wait->link);
		drop_if_unused(table, wait->slot);
	}
	end_waits(table, waiter);
}

struct store_waiter *store_table_next_released(struct store_table *table)
{
	struct list *link = list_shift(&table->released);
	return link ? list_entry(link, struct store_waiter, released) : NULL;
}

/* ---- values ---- */

/* Makes room for exactly `len` bytes of value; frees memory far beyond the need. */
static void resize(struct store_table *table, struct slot *slot, size_t len, size_t cap)
{
	if (slot->cap < len || slot->cap / 4 > len) {
		table->bytes += cap - slot->cap;
		if (cap == 0) {
			free(slot->data);
			slot->data = NULL;
		} else {
			slot->data = mem_grow(slot->data, cap, 1);
		}
		slot->cap = cap;
	}
	slot->len = len;
	if (!slot->present) {
		slot->present = true;
		table->key_count++;
	}
}

static void assign(struct store_table *table, struct slot *slot, struct bytes value)
{
	resize(table, slot, value.len, value.len);
	if (value.len > 0)
		memcpy(slot->data, value.data, value.len);
}

static struct bytes value_of(const struct slot *slot)
{
	return bytes_of(slot->data, slot->len);
}

int store_table_set(struct store_table *table, struct bytes key, struct bytes value,
		    struct err *err)
{
	struct slot *slot = find(table, key);
	int r = reserve_slot(table, slot, key, value.len, err);
	if (r < 0)
		return r;
	if (!slot)
		slot = find_or_add(table, key);
	assign(table, slot, value);
	release_all(table, slot);
	return 0;
}

bool store_table_get(const struct store_table *table, struct bytes key, struct bytes *ret_value)
{
	const struct slot *slot = find(table, key);
	if (!slot || !slot->present)
		return false;
	*ret_value = value_of(slot);
	return true;
}

int store_table_compare_set(struct store_table *table, struct bytes key, struct bytes expected,
			    struct bytes desired, struct bytes *ret_value, struct err *err)
{
	struct slot *slot = find(table, key);
	bool present = slot && slot->present;
	if (!present && expected.len > 0) {
		*ret_value = expected;
		return 0;
	}
	if (!present || bytes_eq(value_of(slot), expected)) {
		int r = store_table_set(table, key, desired, err);
		if (r < 0)
			return r;
		slot = find(table, key);
	} else {
		release_all(table, slot);
	}
	*ret_value = value_of(slot);
	return 0;
}

int store_table_append(struct store_table *table, struct bytes key, struct bytes value,
		       struct err *err)
{
	struct slot *slot = find(table, key);
	size_t old = slot && slot->present ? slot->len : 0;
	size_t len = old + value.len;
	/* Doubling keeps a value built of many small parts linear. */
	size_t cap = slot && len > slot->cap ? MAX(len, 2 * slot->cap) : len;
	int r = reserve_slot(table, slot, key, cap, err);
	if (r < 0)
		return r;
	if (!slot)
		slot = find_or_add(table, key);
	resize(table, slot, len, cap);
	if (value.len > 0)
		memcpy(slot->data + old, value.data, value.len);
	release_all(table, slot);
	return 0;
}

bool store_table_delete(struct store_table *table, struct bytes key)
{
	struct slot *slot = find(table, key);
	if (!slot || !slot->present)
		return false;
	free(slot->data);
	table->bytes -= slot->cap;
	table->key_count--;
	slot->present = false;
	slot->data = NULL;
	slot->len = slot->cap = 0;
	drop_if_unused(table, slot);
	return true;
}

bool store_table_has(const struct store_table *table, struct bytes key)
{
	return slot_ready(find(table, key));
}

void store_table_each_key(const struct store_table *table, store_key_fn *on_key, void *arg)
{
	map_foreach(entry, &table->slots)
	{
		if (((const struct slot *)entry->value)->present)
			on_key(arg, bytes_of(entry->key, entry->key_len));
	}
}

static void add_length(void *arg, struct bytes key)
{
	*(size_t *)arg += key.len;
}

size_t store_table_key_bytes(const struct store_table *table)
{
	size_t total = 0;
	store_table_each_key(table, add_length, &total);
	return total;
}

/* ---- numbers ---- */

static bool is_blank(unsigned char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* As C's strtoll in base 10: blanks, a sign, digits; what follows them is ignored. */
static int parse_number(struct bytes text, int64_t *ret_number)
{
	size_t i = 0;
	while (i < text.len && is_blank(text.data[i]))
		i++;
	bool negative = i < text.len && text.data[i] == '-';
	if (i < text.len && (text.data[i] == '-' || text.data[i] == '+'))
		i++;
	if (i == text.len || text.data[i] < '0' || text.data[i] > '9')
		return -EINVAL;
	int64_t number = 0; /* kept negative: the negative range is larger by one */
	for (; i < text.len && text.data[i] >= '0' && text.data[i] <= '9'; i++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_sub_overflow(number, text.data[i] - '0', &number))
			return -ERANGE;
	if (!negative && number == INT64_MIN)
		return -ERANGE;
	*ret_number = negative ? number : -number;
	return 0;
}

/* Adds to the number in the slot's value without waking waiters. */
static int count_up(struct store_table *table, struct bytes key, int64_t delta,
		    struct slot **ret_slot, int64_t *ret_sum, struct err *err)
{
	struct slot *slot = find(table, key);
	int64_t number = 0;
	if (slot && slot->present && parse_number(value_of(slot), &number) < 0)
		return err_set(err, EINVAL, "the value to count up is not a number");
	int r = reserve_slot(table, slot, key, NUMBER_TEXT_MAX, err);
	if (r < 0)
		return r;
	if (!slot)
		slot = find_or_add(table, key);
	int64_t sum = (int64_t)((uint64_t)number + (uint64_t)delta);
	char text[NUMBER_TEXT_MAX];
	int len = snprintf(text, sizeof(text), "%lld", (long long)sum);
	assign(table, slot, bytes_of(text, (size_t)len));
	*ret_slot = slot;
	*ret_sum = sum;
	return 0;
}

int store_table_add(struct store_table *table, struct bytes key, int64_t delta, int64_t *ret_sum,
		    struct err *err)
{
	struct slot *slot;
	int r = count_up(table, key, delta, &slot, ret_sum, err);
	if (r < 0)
		return r;
	release_all(table, slot);
	return 0;
}

int store_table_barrier(struct store_table *table, struct store_waiter *waiter, struct bytes key,
			int64_t world, struct err *err)
{
	assert(!store_waiter_busy(waiter));
	int r = reserve(table, sizeof(struct store_wait), err);
	if (r < 0)
		return r;
	struct slot *slot;
	int64_t arrived;
	r = count_up(table, key, 1, &slot, &arrived, err);
	if (r < 0)
		return r;
	if (arrived >= world) {
		release_all(table, slot);
		return 1;
	}
	start_waits(table, waiter, 1);
	wait_for(waiter, slot);
	return 0;
}

/* ---- queues ---- */

int store_table_push(struct store_table *table, struct bytes key, struct bytes value,
		     struct err *err)
{
	struct slot *slot = find(table, key);
	int r = reserve_slot(table, slot, key, sizeof(struct item) + value.len, err);
	if (r < 0)
		return r;
	if (!slot)
		slot = find_or_add(table, key);
	struct item *item = mem_alloc(sizeof(*item) + value.len);
	item->len = value.len;
	if (value.len > 0)
		memcpy(item->data, value.data, value.len);
	list_append(&slot->queue, &item->link);
	slot->queue_len++;
	table->bytes += sizeof(struct item) + value.len;
	release_one(table, slot);
	return 0;
}

size_t store_table_front(const struct store_table *table, struct bytes key, struct bytes *ret_value)
{
	const struct slot *slot = find(table, key);
	if (!slot || slot->queue_len == 0)
		return 0;
	const struct item *item = list_entry(slot->queue.next, struct item, link);
	*ret_value = bytes_of(item->data, item->len);
	return slot->queue_len;
}

void store_table_pop(struct store_table *table, struct bytes key)
{
	struct slot *slot = find(table, key);
	if (!slot || slot->queue_len == 0)
		return;
	struct item *item = list_entry(list_shift(&slot->queue), struct item, link);
	table->bytes -= sizeof(struct item) + item->len;
	slot->queue_len--;
	free(item);
	drop_if_unused(table, slot);
}
