/* Reading: the first lines of every file, in threads. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/archive/archive.h"
#include "proto/json_in.h"
#include "sys/thread.h"

#define KEY_LINE_MAX ((size_t)64 << 10)
#define SUMMARY_MAX ((int64_t)1 << 30)
#define FOLDER_DEPTH 2 /* class and configuration */

/* ------------------------------------------------------------------ which files */

static void add_entry(struct archive *archive, char *path)
{
	ARRAY_RESERVE(archive->entries, archive->count, archive->cap);
	archive->entries[archive->count++] = (struct archive_entry){ .path = path };
}

static int walk(struct archive *archive, const char *dir, int depth, struct err *err)
{
	DIR *stream = opendir(dir);
	if (!stream)
		return err_set(err, errno, "%s: %m", dir);
	int r = 0;
	for (struct dirent *found; r >= 0 && (found = readdir(stream));) {
		if (found->d_name[0] == '.')
			continue; /* also what is just being written */
		char *path = mem_printf("%s/%s", dir, found->d_name);
		if (depth == FOLDER_DEPTH && str_ends(path, ".jsonl")) {
			add_entry(archive, path);
			continue;
		}
		/* Anything else is not ours. */
		if (depth < FOLDER_DEPTH)
			r = walk(archive, path, depth + 1, err);
		if (r == -ENOTDIR)
			r = 0;
		free(path);
	}
	closedir(stream);
	return r;
}

static int by_place(const void *a, const void *b)
{
	const struct archive_entry *x = a, *y = b;
	return strcmp(x->path, y->path);
}

/* ------------------------------------------------------------------- one file */

/* `room` is for the text while it is read. */
static int take_text(struct json_in *in, struct buf *room, char **ret_text)
{
	int r = json_in_string(in, room);
	if (r >= 0) {
		free(*ret_text);
		*ret_text = mem_strndup(buf_str(room), buf_len(room));
	}
	return r;
}

int archive_read_key(struct archive_entry *entry, const char *line, size_t len, int64_t *ret_bytes)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	struct json_in in;
	json_in_init(&in, line, len);
	int r = json_in_enter(&in, '{');
	while (r >= 0 && (r = json_in_member(&in, &key)) > 0) {
		const char *name = buf_str(&key);
		if (str_eq(name, "version"))
			r = take_text(&in, &key, &entry->key.version);
		else if (str_eq(name, "class"))
			r = take_text(&in, &key, &entry->key.host_class);
		else if (str_eq(name, "configuration"))
			r = take_text(&in, &key, &entry->key.configuration);
		else if (str_eq(name, "time"))
			r = json_in_int(&in, &entry->key.time_s);
		else if (str_eq(name, "summary_bytes"))
			r = json_in_int(&in, ret_bytes);
		else
			r = json_in_skip(&in);
	}
	bool whole = entry->key.version && entry->key.host_class && entry->key.configuration;
	return r < 0 ? r : whole && *ret_bytes >= 0 && *ret_bytes <= SUMMARY_MAX ? 0 : -EINVAL;
}

static int metric_of(const char *key)
{
	return str_eq(key, "value") ? ARCHIVE_VALUE : metric_find(key, strlen(key));
}

/* `key` is room for the names of members. */
static int read_point(struct archive_point *point, const char *line, size_t len, struct buf *key)
{
	struct json_in in;
	for (size_t i = 0; i < ARCHIVE_METRICS; i++)
		point->values[i] = NAN;
	json_in_init(&in, line, len);
	int r = json_in_enter(&in, '{'), metric;
	while (r >= 0 && (r = json_in_member(&in, key)) > 0) {
		const char *name = buf_str(key);
		int64_t runs;
		if (str_eq(name, "id")) {
			r = take_text(&in, key, &point->id);
		} else if (str_eq(name, "name")) {
			r = take_text(&in, key, &point->name);
		} else if (str_eq(name, "runs")) {
			r = json_in_int(&in, &runs);
			point->runs = r >= 0 && runs > 0 && runs < UINT32_MAX ? (uint32_t)runs : 1;
		} else if (str_eq(name, "source")) {
			r = take_text(&in, key, &point->source);
		} else if (str_eq(name, "unit")) {
			r = take_text(&in, key, &point->unit);
		} else if (str_eq(name, "more_is_better")) {
			r = json_in_bool(&in, &point->more_is_better);
		} else if ((metric = metric_of(name)) >= 0) {
			r = json_in_double(&in, &point->values[metric]);
		} else {
			r = json_in_skip(&in);
		}
	}
	return r < 0 ? r : point->id ? 0 : -EINVAL;
}

int archive_read_points(struct archive_entry *entry, const char *text, size_t len)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	for (const char *end = text + len; text < end;) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		if (!newline)
			return -EINVAL;
		ARRAY_RESERVE(entry->points, entry->point_count, entry->point_cap);
		struct archive_point *point = &entry->points[entry->point_count++];
		*point = (struct archive_point){ .runs = 1 };
		int r = read_point(point, text, (size_t)(newline - text), &key);
		if (r < 0)
			return r;
		text = newline + 1;
	}
	return 0;
}

static int entry_read(struct archive_entry *entry, struct err *err)
{
	AUTO(fd_close) int fd = open(entry->path, O_RDONLY | O_CLOEXEC);
	AUTO_FREE char *line = mem_alloc(KEY_LINE_MAX);
	ssize_t got = fd < 0 ? -1 : pread(fd, line, KEY_LINE_MAX, 0);
	if (got < 0)
		return err_set(err, errno, "%s: %m", entry->path);
	const char *newline = memchr(line, '\n', (size_t)got);
	int64_t bytes = -1;
	int r = newline ? archive_read_key(entry, line, (size_t)(newline - line), &bytes) : -EINVAL;
	if (r < 0)
		return err_set(err, EINVAL, "%s: not a file of a history", entry->path);
	AUTO_FREE char *text = mem_alloc((size_t)bytes + 1);
	got = pread(fd, text, (size_t)bytes, newline + 1 - line);
	if (got != bytes || archive_read_points(entry, text, (size_t)bytes) < 0)
		return err_set(err, EINVAL, "%s: its summary is broken", entry->path);
	return 0;
}

/* -------------------------------------------------------------------- threads */

struct readers {
	struct archive *archive;
	atomic_size_t next;
};

static void *read_entries(void *arg)
{
	struct readers *readers = arg;
	for (size_t i; (i = atomic_fetch_add(&readers->next, 1)) < readers->archive->count;)
		entry_read(&readers->archive->entries[i], &readers->archive->entries[i].err);
	return NULL;
}

int archive_load(struct archive *archive, const char *dir, struct err *err)
{
	int r = walk(archive, dir, 0, err);
	if (r < 0)
		return r;
	if (archive->count == 0)
		return err_set(
			err, ENODATA,
			"%s: no results were filed here; 'muster batch --history-dir=%s' files "
			"them",
			dir, dir);
	qsort(archive->entries, archive->count, sizeof(*archive->entries), by_place);
	struct readers readers = { .archive = archive };
	thread_all(read_entries, &readers);
	for (size_t i = 0; i < archive->count; i++)
		if (archive->entries[i].err.code)
			return err_set(err, archive->entries[i].err.code, "%s",
				       archive->entries[i].err.msg);
	return 0;
}

void archive_entry_done(struct archive_entry *entry)
{
	for (size_t i = 0; i < entry->point_count; i++) {
		free(entry->points[i].id);
		free(entry->points[i].name);
		free(entry->points[i].source);
		free(entry->points[i].unit);
	}
	free(entry->points);
	free(entry->path);
	archive_key_done(&entry->key);
}

void archive_done(struct archive *archive)
{
	for (size_t i = 0; i < archive->count; i++)
		archive_entry_done(&archive->entries[i]);
	free(archive->entries);
	*archive = ARCHIVE_INIT;
}
