#include "fleet/branches.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/piped.h"
#include "base/str.h"
#include "core/lines/line_split.h"
#include "core/worker/exit_status.h"
#include "fleet/channel.h"

#define CHUNK 4096
#define LAST_CHUNKS 64 /* read at most this much of its last words */

struct branch {
	struct branches *branches;
	struct branch *next;
	uint32_t host;
	struct piped piped;
	struct channel channel;
	struct event ended, words, bury;
	struct line_split split;
	char last_words[BRANCH_TEXT_MAX]; /* its last line on stderr */
};

void branches_init(struct branches *branches, struct event_base *base,
		   const struct branches_handler *handler, void *arg)
{
	*branches = (struct branches){
		.base = base, .handler = handler, .arg = arg, .by_host = MAP_INIT
	};
}

static struct branch *find(const struct branches *branches, uint32_t host)
{
	return map_get(&branches->by_host, &host, sizeof(host));
}

/* ---- its last words ---- */

static void keep_line(struct branch *branch, const struct line *line)
{
	size_t len = line->len - (line->end != LINE_OPEN);
	if (len == 0 || line->continues)
		return;
	snprintf(branch->last_words, sizeof(branch->last_words), "%.*s", (int)len, line->text);
	str_make_printable(branch->last_words);
	len = strlen(branch->last_words);
	while (len > 0 && strchr("? ", branch->last_words[len - 1]))
		branch->last_words[--len] = '\0'; /* ssh ends its lines with a carriage return */
}

static ssize_t read_words(struct branch *branch)
{
	char chunk[CHUNK];
	struct line line;
	ssize_t n = read(branch->piped.err, chunk, sizeof(chunk));
	if (n <= 0)
		return n < 0 ? -errno : 0;
	line_split_push(&branch->split, chunk, (size_t)n);
	while (line_split_next(&branch->split, &line))
		keep_line(branch, &line);
	return n;
}

static void on_words(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct branch *branch = arg;
	ssize_t n = read_words(branch);
	if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR))
		event_del(&branch->words);
}

static void finish_words(struct branch *branch)
{
	struct line line;
	for (int i = 0; i < LAST_CHUNKS && read_words(branch) > 0; i++)
		;
	if (line_split_finish(&branch->split, &line))
		keep_line(branch, &line);
}

/* ---- its end ---- */

static void forget(struct branch *branch)
{
	struct map *by_host = &branch->branches->by_host;
	map_foreach(entry, by_host) if (entry->value == branch)
		map_remove(by_host, entry->key, entry->key_len);
	for (struct branch **at = &branch->branches->first; *at; at = &(*at)->next)
		if (*at == branch) {
			*at = branch->next;
			break;
		}
}

/* Until we have waited for it, no other process has its number. */
static struct exit_status reap(struct branch *branch)
{
	kill(branch->piped.pid, SIGKILL);
	int status = child_wait(branch->piped.pid);
	return status >= 0 ? exit_status_from_wait(status)
			   : (struct exit_status){ .kind = EXIT_UNKNOWN };
}

static void release(struct branch *branch)
{
	event_del(&branch->ended);
	event_del(&branch->words);
	event_del(&branch->bury);
	channel_close(&branch->channel);
	fd_close(&branch->piped.pidfd);
	fd_close(&branch->piped.err);
	line_split_done(&branch->split);
	free(branch);
}

static void on_bury(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct branch *branch = arg;
	reap(branch);
	release(branch);
}

/* Not freed here: this may be called from its own channel. */
static void drop(struct branch *branch)
{
	forget(branch);
	channel_close(&branch->channel);
	event_del(&branch->ended);
	event_active(&branch->bury, EV_TIMEOUT, 0);
}

static void on_ended(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct branch *branch = arg;
	struct branches *branches = branch->branches;
	uint32_t host = branch->host;
	char why[BRANCH_TEXT_MAX];
	struct exit_status status = reap(branch);
	finish_words(branch);
	AUTO(buf_done) struct buf how = BUF_INIT;
	exit_status_describe(&status, &how);
	snprintf(why, sizeof(why), "%s", *branch->last_words ? branch->last_words : buf_str(&how));
	forget(branch);
	release(branch);
	branches->handler->on_down(branches->arg, host, why);
}

/* ---- talking ---- */

static void on_msg(void *arg, const struct fleet_msg *msg)
{
	struct branch *branch = arg;
	struct branches *branches = branch->branches;
	if (find(branches, msg->host) == branch)
		branches->handler->on_msg(branches->arg, msg);
	else
		log_debug("host %u speaks for host %u, which is not behind it", branch->host,
			  msg->host);
}

/* Without output it is of no use; its end tells why. */
static void on_end(void *arg, const char *why)
{
	struct branch *branch = arg;
	if (!*branch->last_words)
		snprintf(branch->last_words, sizeof(branch->last_words), "%s", why);
	struct timeval soon = clock_timeval(NS_PER_S);
	event_add(&branch->ended, &soon);
}

static const struct channel_handler channel_handler = { .on_msg = on_msg, .on_end = on_end };

int branches_reach(struct branches *branches, uint32_t host, char *const *argv, struct err *err)
{
	const struct piped_spec spec = { .argv = argv, .envp = environ };
	struct piped piped;
	int r = piped_start(&spec, &piped, err);
	if (r < 0)
		return r;
	struct branch *branch = NEW(struct branch);
	*branch = (struct branch){ .branches = branches,
				   .next = branches->first,
				   .host = host,
				   .piped = piped,
				   .split = LINE_SPLIT_INIT };
	branches->first = branch;
	map_put(&branches->by_host, &host, sizeof(host), branch);
	channel_open(&branch->channel, branches->base, piped.out, piped.in, false, &channel_handler,
		     branch);
	fd_set_nonblock(piped.err, true);
	event_assign(&branch->words, branches->base, piped.err, EV_READ | EV_PERSIST, on_words,
		     branch);
	event_assign(&branch->ended, branches->base, piped.pidfd, EV_READ, on_ended, branch);
	event_assign(&branch->bury, branches->base, -1, 0, on_bury, branch);
	event_add(&branch->words, NULL);
	event_add(&branch->ended, NULL);
	return 0;
}

void branches_drop(struct branches *branches, uint32_t host)
{
	struct branch *branch = find(branches, host);
	if (branch && branch->host == host)
		drop(branch);
}

void branches_set_way(struct branches *branches, uint32_t host, int64_t via)
{
	struct branch *branch = via >= 0 ? find(branches, (uint32_t)via) : NULL;
	struct branch *own = find(branches, host);
	if (own && own->host == host)
		return; /* reached from here */
	if (branch)
		map_put(&branches->by_host, &host, sizeof(host), branch);
	else
		map_remove(&branches->by_host, &host, sizeof(host));
}

void branches_send(struct branches *branches, uint32_t host, const void *data, size_t len)
{
	struct branch *branch = find(branches, host);
	if (branch)
		channel_send(&branch->channel, data, len);
}

void branches_send_all(struct branches *branches, const void *data, size_t len)
{
	for (struct branch *branch = branches->first; branch; branch = branch->next)
		channel_send(&branch->channel, data, len);
}

void branches_hold(struct branches *branches, bool hold)
{
	for (struct branch *branch = branches->first; branch; branch = branch->next)
		channel_hold(&branch->channel, hold);
}

void branches_leave(struct branches *branches, uint64_t deadline_ns)
{
	for (struct branch *branch = branches->first; branch; branch = branch->next)
		channel_close(&branch->channel);
	for (struct branch *branch = branches->first; branch; branch = branch->next)
		fd_wait(branch->piped.pidfd, POLLIN, deadline_ns);
}

void branches_done(struct branches *branches)
{
	while (branches->first) {
		struct branch *branch = branches->first;
		forget(branch);
		reap(branch);
		release(branch);
	}
	map_done(&branches->by_host);
}
