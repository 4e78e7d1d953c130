#include "core/fleet/hostfile.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

void hostfile_done(struct hostfile *list)
{
	free(list->items);
	map_done(&list->by_name);
	*list = HOSTFILE_INIT;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("._-@%:+", c));
}

static int check_name(const char *name, size_t len, struct err *err)
{
	if (len == 0)
		return err_set(err, EINVAL, "a host has no name");
	if (len >= HOST_NAME_TEXT_MAX)
		return err_set(err, EINVAL, "'%.32s...' is longer than %d bytes", name,
			       HOST_NAME_TEXT_MAX - 1);
	if (name[0] == '-')
		return err_set(err, EINVAL, "'%.*s' is not the name of a host", (int)len, name);
	for (size_t i = 0; i < len; i++)
		if (!is_name_char(name[i]))
			return err_set(err, EINVAL, "'%.*s' is not the name of a host", (int)len,
				       name);
	return 0;
}

static int to_slots(const char *text, size_t len, uint32_t *ret_slots, struct err *err)
{
	AUTO_FREE char *number = mem_strndup(text, len);
	uint64_t slots;
	if (str_to_u64(number, &slots) < 0 || slots < 1 || slots > HOST_SLOTS_MAX)
		return err_set(err, EINVAL, "'%.32s' is not a number of slots (1 to %d)", number,
			       HOST_SLOTS_MAX);
	*ret_slots = (uint32_t)slots;
	return 0;
}

/* Cuts "host:4", "[::1]:4" and "host" into name and slots. Two colons or more without brackets are
 * an address. */
static int cut_slots(const char **name, size_t *len, uint32_t *slots, struct err *err)
{
	const char *end = *name + *len, *colon = NULL;
	if (*len > 0 && **name == '[') {
		const char *bracket = memchr(*name, ']', *len);
		if (!bracket || (bracket + 1 < end && bracket[1] != ':'))
			return err_set(err, EINVAL, "'%.*s': a bracket is not closed",
				       (int)MIN(*len, 64), *name);
		colon = bracket + 1 < end ? bracket + 1 : NULL;
		*name += 1;
		*len = (size_t)(bracket - *name);
	} else {
		colon = memchr(*name, ':', *len);
		if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
			colon = NULL;
		if (colon)
			*len = (size_t)(colon - *name);
	}
	return colon ? to_slots(colon + 1, (size_t)(end - colon - 1), slots, err) : 0;
}

/* As mpirun: a host that is named once more has a slot more, or as many more as are said. */
static int add(struct hostfile *list, const char *name, size_t len, uint32_t slots, struct err *err)
{
	int r = check_name(name, len, err);
	if (r < 0)
		return r;
	size_t index = (uintptr_t)map_get(&list->by_name, name, len);
	if (index) {
		struct host_entry *entry = &list->items[index - 1];
		entry->slots = MAX(entry->slots, 1) + MAX(slots, 1);
		if (entry->slots > HOST_SLOTS_MAX)
			return err_set(err, EINVAL, "'%s' has more than %d slots", entry->name,
				       HOST_SLOTS_MAX);
		return 0;
	}
	if (list->count == HOSTS_MAX)
		return err_set(err, EINVAL, "there are more than %d hosts", HOSTS_MAX);
	ARRAY_RESERVE(list->items, list->count, list->cap);
	struct host_entry *entry = &list->items[list->count++];
	*entry = (struct host_entry){ .slots = slots };
	memcpy(entry->name, name, len);
	map_put(&list->by_name, name, len, (void *)(uintptr_t)list->count);
	return 0;
}

static int add_host(struct hostfile *list, const char *name, size_t len, uint32_t slots,
		    struct err *err)
{
	int r = cut_slots(&name, &len, &slots, err);
	return r < 0 ? r : add(list, name, len, slots, err);
}

int hostfile_add_list(struct hostfile *list, const char *text, struct err *err)
{
	const char *rest = text, *piece;
	size_t len;
	while ((piece = str_split(&rest, ',', &len))) {
		piece = str_trim(piece, &len);
		int r = add_host(list, piece, len, 0, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of a line, in which blanks around "=" do not count: "slots = 4" is one. */
static const char *next_word(const char **at, const char *end, struct buf *word)
{
	buf_clear(word);
	while (*at < end && is_blank(**at))
		++*at;
	while (*at < end) {
		const char *next = *at;
		while (next < end && is_blank(*next))
			next++;
		bool after_sign = buf_len(word) > 0 && buf_data(word)[buf_len(word) - 1] == '=';
		if (next > *at && !after_sign && (next == end || *next != '='))
			break;
		if (next == end)
			break;
		buf_append_char(word, *next);
		*at = next + 1;
	}
	return buf_len(word) > 0 ? buf_str(word) : NULL;
}

/* max_slots limits what mpirun may add by itself; muster never starts more than slots. */
static int take_setting(const char *word, uint32_t *slots, struct err *err)
{
	static const char *const maxima[] = { "max_slots=", "max-slots=" };
	static const char slots_is[] = "slots=";
	uint32_t ignored;
	if (str_starts(word, slots_is))
		return to_slots(word + strlen(slots_is), strlen(word + strlen(slots_is)), slots,
				err);
	for (size_t i = 0; i < ARRAY_LEN(maxima); i++)
		if (str_starts(word, maxima[i]))
			return to_slots(word + strlen(maxima[i]), strlen(word + strlen(maxima[i])),
					&ignored, err);
	return err_set(err, EINVAL, "'%.64s' is neither slots=N nor max_slots=N", word);
}

static int add_line(struct hostfile *list, const char *line, size_t len, struct err *err)
{
	if (memchr(line, '\0', len))
		return err_set(err, EINVAL, "there is a NUL in it");
	const char *comment = memchr(line, '#', len);
	const char *at = line, *end = comment ? comment : line + len;
	AUTO(buf_done) struct buf word = BUF_INIT, name = BUF_INIT;
	uint32_t slots = 0;
	if (!next_word(&at, end, &name))
		return 0;
	for (const char *setting; (setting = next_word(&at, end, &word));) {
		int r = take_setting(setting, &slots, err);
		if (r < 0)
			return r;
	}
	return add_host(list, buf_str(&name), buf_len(&name), slots, err);
}

int hostfile_add_text(struct hostfile *list, const char *text, size_t len, struct err *err)
{
	size_t number = 0;
	for (const char *at = text, *end = text + len; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		number++;
		int r = add_line(list, at, (size_t)(stop - at), err);
		if (r < 0)
			return err_wrap(err, "line %zu", number);
		at = stop + 1;
	}
	return 0;
}
