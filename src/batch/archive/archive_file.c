/* Writing: one result, whole, under a name of its own. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "batch/archive/archive.h"
#include "batch/archive/run_program.h"
#include "batch/results.h"
#include "batch/samples.h"
#include "core/batch/stats.h"
#include "proto/json_out.h"
#include "proto/result.h"

#define NAME_MAX_CHARS 60

/* ------------------------------------------------------------------ summaries */

/* The values of one order while it is read. */
struct sums {
	char *id, *name, *source, *unit; /* name: NULL where the id is one */
	double *values[ARCHIVE_METRICS];
	size_t counts[ARCHIVE_METRICS], caps[ARCHIVE_METRICS];
	uint32_t runs;
	bool more_is_better;
};

struct summary {
	struct map by_id;
	struct sums **orders;
	size_t count, cap;
};

static void summary_done(struct summary *summary)
{
	for (size_t i = 0; i < summary->count; i++) {
		struct sums *sums = summary->orders[i];
		for (size_t k = 0; k < ARCHIVE_METRICS; k++)
			free(sums->values[k]);
		free(sums->id);
		free(sums->name);
		free(sums->source);
		free(sums->unit);
		free(sums);
	}
	free(summary->orders);
	map_done(&summary->by_id);
}

static void add_value(struct sums *sums, size_t metric, double value)
{
	if (isnan(value))
		return;
	ARRAY_RESERVE(sums->values[metric], sums->counts[metric], sums->caps[metric]);
	sums->values[metric][sums->counts[metric]++] = value;
}

static struct sums *sums_of(struct summary *summary, const struct result *result)
{
	const char *id = result->id;
	struct sums *sums = map_get(&summary->by_id, id, strlen(id));
	if (sums)
		return sums;
	sums = NEW(struct sums);
	sums->id = mem_strdup(id);
	/* An id that was not given is a hash, which says nothing to people. */
	if (str_starts(result->hash, id))
		sums->name = samples_command_text(result);
	ARRAY_RESERVE(summary->orders, summary->count, summary->cap);
	summary->orders[summary->count++] = sums;
	map_put(&summary->by_id, id, strlen(id), sums);
	return sums;
}

static void set_once(char **text, const char *value)
{
	if (!*text && value)
		*text = mem_strdup(value);
}

static void add_result(struct summary *summary, const struct result *result)
{
	if (result->warmup || result->reason != REASON_OK)
		return;
	struct sums *sums = sums_of(summary, result);
	double values[METRIC_COUNT];
	samples_metrics(result, values);
	for (size_t i = 0; i < METRIC_COUNT; i++)
		add_value(sums, i, values[i]);
	add_value(sums, ARCHIVE_VALUE, result->has_number ? result->number : NAN);
	set_once(&sums->source, result->count_source);
	set_once(&sums->unit, result->unit);
	sums->more_is_better |= result->more_is_better;
	sums->runs++;
}

static int on_result(void *arg, struct result *result, struct err *err UNUSED)
{
	add_result(arg, result);
	return 0;
}

static const char *metric_key(size_t metric)
{
	return metric == ARCHIVE_VALUE ? "value" : metric_table[metric].name;
}

static void write_summary(struct sums *sums, struct buf *out)
{
	struct json_out json = JSON_OUT(out);
	json_out_open(&json, NULL, '{');
	json_out_text(&json, "muster", "summary");
	json_out_text(&json, "id", sums->id);
	json_out_text_if(&json, "name", sums->name);
	json_out_int(&json, "runs", sums->runs);
	for (size_t i = 0; i < ARCHIVE_METRICS; i++) {
		if (!sums->counts[i])
			continue;
		stats_sort(sums->values[i], sums->counts[i]);
		json_out_real(&json, metric_key(i), stats_median(sums->values[i], sums->counts[i]));
	}
	json_out_text_if(&json, "source", sums->source);
	json_out_text_if(&json, "unit", sums->unit);
	if (sums->more_is_better)
		json_out_bool(&json, "more_is_better", true);
	json_out_close(&json, '}');
	buf_append_char(out, '\n');
}

/* The lines in front of a result: the key, with the length of what follows, and the summaries. */
static void write_front(const struct archive_key *key, const struct summary *summary,
			struct buf *out)
{
	AUTO(buf_done) struct buf lines = BUF_INIT;
	struct json_out json = JSON_OUT(out);
	for (size_t i = 0; i < summary->count; i++)
		write_summary(summary->orders[i], &lines);
	json_out_open(&json, NULL, '{');
	json_out_text(&json, "muster", "history");
	json_out_int(&json, "v", 1);
	json_out_text(&json, "version", key->version);
	json_out_int(&json, "time", key->time_s);
	json_out_text(&json, "class", key->host_class);
	json_out_text(&json, "configuration", key->configuration);
	json_out_int(&json, "summary_bytes", (int64_t)buf_len(&lines));
	json_out_close(&json, '}');
	buf_append_char(out, '\n');
	buf_append(out, buf_data(&lines), buf_len(&lines));
}

/* ---------------------------------------------------------------------- files */

/* A part of a path from a text: letters, digits and "._-" stay. */
static void append_name(struct buf *path, const char *text)
{
	const char *safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	for (size_t i = 0; text[i] && i < NAME_MAX_CHARS; i++)
		buf_append_char(path,
				strchr(safe, text[i]) || (i && text[i] == '.') ? text[i] : '-');
}

static int make_dir(const char *path, struct err *err)
{
	return mkdir(path, 0777) < 0 && errno != EEXIST ? err_set(err, errno, "%s: %m", path) : 0;
}

static int sync_dir(const char *path, struct err *err)
{
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		return err_set(err, errno, "%s: %m", path);
	return 0;
}

/* DIR/CLASS/CONFIGURATION, made where it is missing. */
static int make_folder(const char *dir, const struct archive_key *key, struct buf *ret_path,
		       struct err *err)
{
	const char *parts[] = { key->host_class, key->configuration };
	buf_append_str(ret_path, dir);
	int r = make_dir(buf_str(ret_path), err);
	for (size_t i = 0; i < ARRAY_LEN(parts) && r >= 0; i++) {
		buf_append_char(ret_path, '/');
		append_name(ret_path, parts[i]);
		r = make_dir(buf_str(ret_path), err);
	}
	return r;
}

static int write_file(const char *path, const struct buf *text, struct err *err)
{
	AUTO(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_set(err, errno, "%s: %m", path);
	int r = fd_write_all(fd, buf_data(text), buf_len(text));
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r < 0 ? err_set(err, -r, "%s: %m", path) : 0;
}

/* Names the file only once it is on the disk; the number keeps two writers apart. */
static int put_file(const char *dir, const struct archive_key *key, const struct buf *text,
		    struct err *err)
{
	AUTO(buf_done) struct buf folder = BUF_INIT, name = BUF_INIT;
	int r = make_folder(dir, key, &folder, err);
	if (r < 0)
		return r;
	unsigned long long number = random_u64();
	AUTO_FREE char *part = mem_printf("%s/.%016llx.part", buf_str(&folder), number);
	buf_printf(&name, "%s/%lld-", buf_str(&folder), (long long)key->time_s);
	append_name(&name, key->version);
	buf_printf(&name, "-%016llx.jsonl", number);
	r = write_file(part, text, err);
	if (r == 0 && rename(part, buf_str(&name)) < 0)
		r = err_set(err, errno, "%s: %m", buf_str(&name));
	if (r < 0) {
		unlink(part);
		return r;
	}
	return sync_dir(buf_str(&folder), err);
}

int archive_file(const char *dir, const struct archive_key *key, const char *path, struct err *err)
{
	AUTO(summary_done) struct summary summary = { .by_id = MAP_INIT };
	AUTO(buf_done) struct buf text = BUF_INIT, lines = BUF_INIT;
	uint64_t end;
	int r = results_read(path, on_result, &summary, NULL, &end, err);
	if (r < 0)
		return r;
	write_front(key, &summary, &text);
	r = file_read(path, SIZE_MAX, &lines, err);
	if (r < 0)
		return r;
	buf_append(&text, buf_data(&lines), MIN(buf_len(&lines), end));
	return put_file(dir, key, &text, err);
}

/* --------------------------------------------------------------------- imports */

/* The script that reads the files of other tools. */
__asm__(".pushsection .rodata\n"
	"import_source:\n"
	".incbin \"python/muster/_bench.py\"\n"
	".byte 0\n"
	".popsection\n");
extern const char import_source[];

/* One version of an import while it is read. */
struct imported {
	struct archive_key key;
	struct summary summary;
	struct buf lines;
};

struct importing {
	const struct archive_options *options;
	struct archive_key fallback; /* from here; version NULL: there is none */
	struct imported **versions;
	size_t count, cap;
};

static void importing_done(struct importing *importing)
{
	for (size_t i = 0; i < importing->count; i++) {
		archive_key_done(&importing->versions[i]->key);
		summary_done(&importing->versions[i]->summary);
		buf_done(&importing->versions[i]->lines);
		free(importing->versions[i]);
	}
	free(importing->versions);
	archive_key_done(&importing->fallback);
}

static const char *first_of(const char *a, const char *b, const char *c)
{
	return a && *a ? a : b && *b ? b : c;
}

/* Of the version that the script told last. Files keep the values of a version together: the last
 * one is looked at first. */
static struct imported *imported_of(struct importing *importing, const struct archive_key *from)
{
	const struct archive_options *options = importing->options;
	const struct archive_key *fallback = &importing->fallback;
	const char *version = first_of(options->version, from->version, fallback->version);
	const char *configuration =
		first_of(options->configuration, from->configuration, fallback->configuration);
	for (size_t i = importing->count; i-- > 0 && version;)
		if (str_eq(importing->versions[i]->key.version, version) &&
		    str_eq(importing->versions[i]->key.configuration, configuration))
			return importing->versions[i];
	if (!version)
		return NULL;
	struct imported *imported = NEW(struct imported);
	imported->key = (struct archive_key){
		.version = mem_strdup(version),
		.host_class = mem_strdup(
			first_of(options->host_class, from->host_class, fallback->host_class)),
		.configuration = mem_strdup(configuration),
		.time_s = from->time_s ? from->time_s : fallback->time_s,
	};
	ARRAY_RESERVE(importing->versions, importing->count, importing->cap);
	importing->versions[importing->count++] = imported;
	return imported;
}

/* A line of the script: a version, or a value of the version before it. */
static int take_line(struct importing *importing, struct archive_entry *from, const char *line,
		     size_t len, struct err *err)
{
	AUTO(result_done) struct result result = RESULT_INIT;
	int64_t bytes = 0;
	int r = result_read(line, len, &result, err);
	if (r == 0 && archive_read_key(from, line, len, &bytes) < 0)
		return err_set(err, EINVAL, "not a version of a history");
	if (r < 1)
		return r;
	struct imported *imported = imported_of(importing, &from->key);
	if (!imported)
		return err_set(err, EINVAL,
			       "it does not say of which version it is, and this is not a git "
			       "repository: name the version with --version-label");
	add_result(&imported->summary, &result);
	result_write(&result, &imported->lines);
	return 0;
}

/* Has the script read the file at `path`. */
static int read_other_tool(const char *path, struct buf *ret_lines, struct err *err)
{
	const char *chosen = getenv("PYTHON_EXEC"),
		   *python = chosen && *chosen ? chosen : "python3";
	/* -I and -S: neither the working directory nor packages take part. */
	char *argv[] = {
		(char *)python, "-I", "-S", "-c", (char *)import_source, (char *)path, NULL
	};
	int r = program_output(argv, NULL, false, ret_lines, err);
	if (r == -ECHILD && buf_len(ret_lines)) /* it says why */
		return err_set(err, EINVAL, "%s", buf_str(ret_lines));
	return r < 0 ? err_wrap(err, "--import needs Python, python3 or the one in PYTHON_EXEC")
		     : 0;
}

int archive_import(const struct archive_options *options, const char *path, struct err *err)
{
	AUTO(importing_done) struct importing importing = { .options = options };
	AUTO(archive_entry_done) struct archive_entry from = { .path = NULL };
	AUTO(buf_done) struct buf text = BUF_INIT;
	/* Without a version, unless the file says one for every value: take_line() tells. */
	archive_key_make(&importing.fallback, options, "import", NULL);
	int r = read_other_tool(path, &text, err);
	const char *line = buf_str(&text);
	for (size_t len; r >= 0 && *line; line += len + 1) {
		len = strcspn(line, "\n");
		r = take_line(&importing, &from, line, len, err);
	}
	if (r < 0)
		return err_wrap(err, "%s", path);
	for (size_t i = 0; i < importing.count; i++) {
		AUTO(buf_done) struct buf whole = BUF_INIT;
		write_front(&importing.versions[i]->key, &importing.versions[i]->summary, &whole);
		struct buf *lines = &importing.versions[i]->lines;
		buf_append(&whole, buf_data(lines), buf_len(lines));
		r = put_file(options->dir, &importing.versions[i]->key, &whole, err);
		if (r < 0)
			return r;
	}
	return (int)importing.count;
}
