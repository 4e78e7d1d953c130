/* Messages for people, one line each, on stderr: "muster: warning: text".
 *
 * Libraries below `run`, `batch` and `cli` log at debug level only. A program whose loop must not
 * block on a terminal hands over a sink, and lines go there instead (log_set_sink). Any thread may
 * log; the sink is called by one at a time, and must not log itself.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/util.h"

enum log_level {
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG,
	LOG_LEVEL_COUNT,
};

/* Called with a whole line including its newline; borrowed for the call. */
typedef void log_sink_fn(void *arg, enum log_level level, const char *line, size_t len);

void log_set_level(enum log_level level);	 /* LOG_WARN unless set */
void log_set_host(const char *name);		 /* said in each line; borrowed; NULL: none */
void log_set_sink(log_sink_fn *sink, void *arg); /* NULL: stderr again */

/* From "DEBUG", "info", "WARNING", "critical" or Python's numbers; -EINVAL. */
int log_parse_level(const char *text);

void log_at(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

#endif
