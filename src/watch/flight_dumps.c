#include "watch/flight_dumps.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "proto/flight.h"

/* Where the names are, and what they begin with. */
struct place {
	char *folder;
	const char *prefix;
};

static void place_done(struct place *place)
{
	free(place->folder);
}

static struct place place_of(const char *path)
{
	struct stat info;
	if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
		return (struct place){ mem_strdup(path), "" };
	const char *slash = strrchr(path, '/');
	return (struct place){ slash ? mem_strndup(path, (size_t)(slash + 1 - path))
				     : mem_strdup("."),
			       slash ? slash + 1 : path };
}

/* The number at the end of a name that begins so. False: it has none. */
static bool rank_of(const char *name, const char *prefix, uint32_t *ret_rank)
{
	uint64_t rank;
	if (!str_starts(name, prefix))
		return false;
	const char *digits = name + strlen(name);
	while (digits > name + strlen(prefix) && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	if ((*prefix && digits != name + strlen(prefix)) || str_to_u64(digits, &rank) < 0 ||
	    rank >= FLIGHT_DUMPS_RANK_MAX)
		return false;
	*ret_rank = (uint32_t)rank;
	return true;
}

static void set_why(struct flight_answer *answer, const char *why)
{
	snprintf(answer->why, sizeof(answer->why), "%s", why);
	str_make_printable(answer->why);
}

static void read_one(const char *path, struct flight_answer *answer)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	struct err err = ERR_INIT;
	struct stat info;
	int r = stat(path, &info) < 0 ? err_set(&err, errno, "%m")
				      : file_read(path, FLIGHT_ANSWER_MAX, &data, &err);
	if (r >= 0 && *buf_str(&data) == '{')
		r = flight_read_json(buf_str(&data), buf_len(&data), &answer->record, &err);
	else if (r >= 0)
		r = flight_read_pickle(buf_data(&data), buf_len(&data), &answer->record, &err);
	if (r < 0) {
		set_why(answer, err.msg);
		return;
	}
	answer->given = true;
	answer->fetched_ns =
		(uint64_t)info.st_mtim.tv_sec * NS_PER_S + (uint64_t)info.st_mtim.tv_nsec;
}

/* One for each rank. */
struct answers {
	struct flight_answer *items;
	size_t count, cap;
};

static void answers_done(struct answers *answers)
{
	flight_answers_done(answers->items, answers->count);
	free(answers->items);
}

/* Those that are new say that they have none. */
static void answers_grow(struct answers *answers, size_t count)
{
	while (answers->count < count) {
		ARRAY_RESERVE(answers->items, answers->count, answers->cap);
		struct flight_answer *answer = &answers->items[answers->count];
		*answer = (struct flight_answer){ .rank = (uint32_t)answers->count++ };
		set_why(answer, "it left no dump");
	}
}

static void add_members(struct answers *answers)
{
	size_t count = 0;
	for (size_t i = 0; i < answers->count; i++) {
		const struct record *record = &answers->items[i].record;
		for (size_t j = 0; j < record->count; j++) {
			const struct record_group *group = &record->groups[j];
			if (group->rank_count) /* they ascend */
				count = MAX(count, (size_t)group->ranks[group->rank_count - 1] + 1);
		}
	}
	answers_grow(answers, MIN(count, (size_t)FLIGHT_DUMPS_RANK_MAX));
}

static int read_all(DIR *dir, const struct place *place, struct answers *answers, struct err *err)
{
	uint32_t rank;
	for (const struct dirent *entry; (entry = readdir(dir));) {
		if (!rank_of(entry->d_name, place->prefix, &rank))
			continue;
		AUTO_FREE char *file = mem_printf("%s/%s", place->folder, entry->d_name);
		answers_grow(answers, (size_t)rank + 1);
		if (answers->items[rank].given)
			return err_set(err, EEXIST, "more than one dump of rank %u, %s is one",
				       rank, file);
		read_one(file, &answers->items[rank]);
	}
	return 0;
}

int flight_dumps_read(const char *path, struct flight_answer **ret_answers, size_t *ret_count,
		      struct err *err)
{
	AUTO(place_done) struct place place = place_of(path);
	struct answers answers = { .items = NULL };
	DIR *dir = opendir(place.folder);
	if (!dir)
		return err_set(err, errno, "%s: %m", place.folder);
	int r = read_all(dir, &place, &answers, err);
	closedir(dir);
	if (r == 0 && answers.count == 0)
		r = err_set(err, ENOENT, "%s: no file whose name ends in a rank", path);
	if (r < 0) {
		answers_done(&answers);
		return r;
	}
	add_members(&answers);
	*ret_answers = answers.items;
	*ret_count = answers.count;
	return 0;
}
