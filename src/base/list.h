/* Intrusive doubly linked lists. A `struct list` is both head and link; an unlinked link points to
 * itself, so unlinking twice is harmless. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/util.h"

struct list {
	struct list *prev, *next;
};

static inline void list_init(struct list *list)
{
	list->prev = list->next = list;
}

static inline bool list_empty(const struct list *list)
{
	return list->next == list;
}

static inline void list_append(struct list *head, struct list *link)
{
	link->prev = head->prev;
	link->next = head;
	head->prev->next = link;
	head->prev = link;
}

static inline void list_unlink(struct list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	list_init(link);
}

/* Takes the first link off, or returns NULL. */
static inline struct list *list_shift(struct list *head)
{
	if (list_empty(head))
		return NULL;
	struct list *link = head->next;
	list_unlink(link);
	return link;
}

#define list_entry(link, type, member) container_of(link, type, member)

/* The body may unlink and free `it`, but no other link. */
#define list_foreach(it, head) \
	for (struct list *it = (head)->next, *it##_next = it->next; it != (head); \
	     it = it##_next, it##_next = it->next)

#endif
