/* What was measured, in a file of JSON lines that only grows: --resume reads it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "batch/bisect/bisect_run.h"
#include "proto/json_in.h"
#include "proto/json_out.h"

#define STATE_MAX ((size_t)64 << 20)

/* What must be the same for old pairs to count. */
static void write_header(const struct bisect_run *run, struct buf *out)
{
	const struct bisect_run_options *options = run->options;
	struct json_out json = JSON_OUT(out);
	json_out_open(&json, NULL, '{');
	json_out_text(&json, "muster", "bisect");
	json_out_int(&json, "v", 1);
	json_out_text(&json, "good", run->commits[0].full);
	json_out_text(&json, "bad", run->commits[run->count - 1].full);
	json_out_text(&json, "build", options->build);
	json_out_text(&json, "bench", options->bench);
	json_out_text(&json, "metric", metric_table[options->metric].name);
	json_out_text(&json, "count", counter_source_name(options->measure.count));
	json_out_close(&json, '}');
	buf_append_char(out, '\n');
}

static size_t find_commit(const struct bisect_run *run, const char *hash)
{
	size_t i = 0;
	while (i < run->count && !str_eq(run->commits[i].full, hash))
		i++;
	return i;
}

int bisect_run_state_read(struct bisect_run *run, const char *line, size_t len)
{
	AUTO(buf_done) struct buf key = BUF_INIT, hash = BUF_INIT;
	double good = 0, candidate = 0;
	bool failed = false;
	struct json_in in;
	json_in_init(&in, line, len);
	int r = json_in_enter(&in, '{');
	while (r >= 0 && (r = json_in_member(&in, &key)) > 0) {
		const char *name = buf_str(&key);
		r = str_eq(name, "commit")	? json_in_string(&in, &hash)
		    : str_eq(name, "good")	? json_in_double(&in, &good)
		    : str_eq(name, "candidate") ? json_in_double(&in, &candidate)
		    : str_eq(name, "failed")	? json_in_bool(&in, &failed)
						: json_in_skip(&in);
	}
	size_t commit = find_commit(run, buf_str(&hash));
	if (r < 0 || commit == run->count || (!failed && !(good > 0 && candidate > 0)))
		return -EINVAL;
	bisect_built(&run->bisect, 0, true);
	bisect_built(&run->bisect, commit, true);
	if (failed)
		bisect_failed(&run->bisect, commit);
	else
		bisect_measured(&run->bisect, commit, good, candidate);
	return 0;
}

/* Returns the length of the whole lines; a last line without a newline was cut off. */
static int read_lines(struct bisect_run *run, const struct buf *header, struct buf *text,
		      size_t *ret_end, struct err *err)
{
	const char *start = buf_str(text), *at = start, *newline = strchr(at, '\n');
	if (!newline)
		return 0;
	if ((size_t)(newline + 1 - at) != buf_len(header) ||
	    memcmp(at, buf_data(header), buf_len(header)) != 0)
		return err_set(err, EINVAL,
			       "%s/state.jsonl is about another search: resume with its options, "
			       "or search without --resume",
			       run->dir);
	for (at = newline + 1; (newline = strchr(at, '\n')); at = newline + 1)
		if (bisect_run_state_read(run, at, (size_t)(newline - at)) < 0)
			return err_set(err, EINVAL, "%s/state.jsonl: a line is broken", run->dir);
	*ret_end = (size_t)(at - start);
	return 0;
}

static int put(struct bisect_run *run, const struct buf *line, struct err *err)
{
	int r = fd_write_all(run->state_fd, buf_data(line), buf_len(line));
	return r < 0 ? err_set(err, -r, "%s/state.jsonl: %m", run->dir) : 0;
}

int bisect_run_state_open(struct bisect_run *run, struct err *err)
{
	AUTO_FREE char *path = mem_printf("%s/state.jsonl", run->dir);
	AUTO(buf_done) struct buf header = BUF_INIT, text = BUF_INIT;
	size_t end = 0;
	write_header(run, &header);
	run->state_fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (run->state_fd < 0)
		return err_set(err, errno, "%s: %m", path);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	if (fcntl(run->state_fd, F_OFD_SETLK, &lock) < 0)
		return err_set(err, EBUSY, "another search works in %s", run->dir);
	int r = run->options->resume ? fd_read_all(run->state_fd, STATE_MAX, &text, err) : 0;
	if (r >= 0)
		r = read_lines(run, &header, &text, &end, err);
	if (r < 0)
		return r;
	if (ftruncate(run->state_fd, (off_t)end) < 0)
		return err_set(err, errno, "%s: %m", path);
	return end ? 0 : put(run, &header, err);
}

int bisect_run_state_pair(struct bisect_run *run, size_t commit, double good, double candidate,
			  struct err *err)
{
	AUTO(buf_done) struct buf line = BUF_INIT;
	struct json_out json = JSON_OUT(&line);
	json_out_open(&json, NULL, '{');
	json_out_text(&json, "commit", run->commits[commit].full);
	json_out_real(&json, "good", good);
	json_out_real(&json, "candidate", candidate);
	json_out_close(&json, '}');
	buf_append_char(&line, '\n');
	bisect_measured(&run->bisect, commit, good, candidate);
	return put(run, &line, err);
}

int bisect_run_state_failed(struct bisect_run *run, size_t commit, struct err *err)
{
	AUTO(buf_done) struct buf line = BUF_INIT;
	struct json_out json = JSON_OUT(&line);
	json_out_open(&json, NULL, '{');
	json_out_text(&json, "commit", run->commits[commit].full);
	json_out_bool(&json, "failed", true);
	json_out_close(&json, '}');
	buf_append_char(&line, '\n');
	bisect_failed(&run->bisect, commit);
	return put(run, &line, err);
}
