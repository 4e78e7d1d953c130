#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/utf8.h"

static const char *const level_names[] = {
	[LOG_ERROR] = "error: ",
	[LOG_WARN] = "warning: ",
	[LOG_INFO] = "",
	[LOG_DEBUG] = "debug: ",
};
static_assert(ARRAY_LEN(level_names) == LOG_LEVEL_COUNT, "every level needs a name");

static enum log_level threshold = LOG_WARN;
static const char *host;
/* Held while the sink is called: after log_set_sink() no thread is in the old one. */
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static log_sink_fn *current_sink;
static void *sink_arg;

void log_set_level(enum log_level level)
{
	threshold = level;
}

void log_set_host(const char *name)
{
	host = name;
}

void log_set_sink(log_sink_fn *sink, void *arg)
{
	pthread_mutex_lock(&sink_lock);
	current_sink = sink;
	sink_arg = arg;
	pthread_mutex_unlock(&sink_lock);
}

int log_parse_level(const char *text)
{
	static const struct {
		const char *name;
		enum log_level level;
	} names[] = {
		{ "critical", LOG_ERROR }, { "fatal", LOG_ERROR },  { "error", LOG_ERROR },
		{ "warning", LOG_WARN },   { "warn", LOG_WARN },    { "info", LOG_INFO },
		{ "debug", LOG_DEBUG },	   { "notset", LOG_DEBUG },
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcasecmp(text, names[i].name) == 0)
			return (int)names[i].level;

	uint64_t number;
	if (str_to_u64(text, &number) < 0)
		return -EINVAL;
	return number >= 40   ? LOG_ERROR
	       : number >= 30 ? LOG_WARN
	       : number >= 20 ? LOG_INFO
			      : LOG_DEBUG;
}

void log_at(enum log_level level, const char *fmt, ...)
{
	if (level > threshold)
		return;

	int saved = errno;
	AUTO(buf_done) struct buf line = BUF_INIT;
	buf_printf(&line, "muster: %s%s%s", host ? host : "", host ? ": " : "", level_names[level]);
	va_list args;
	va_start(args, fmt);
	errno = saved; /* for %m */
	buf_vprintf(&line, fmt, args);
	va_end(args);
	utf8_make_rest_printable(&line, 0, "\t\n");
	buf_append_char(&line, '\n');

	pthread_mutex_lock(&sink_lock);
	bool taken = current_sink;
	if (taken)
		current_sink(sink_arg, level, (const char *)buf_data(&line), buf_len(&line));
	pthread_mutex_unlock(&sink_lock);
	if (!taken)
		fd_write_all(STDERR_FILENO, buf_data(&line), buf_len(&line));
	errno = saved;
}
