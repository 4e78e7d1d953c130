/* Answers of the template of warm workers (python/muster/_template.py), one message each.
 *
 *     R                ready to fork
 *     F PID PID...     the workers it has forked, in the order of the request
 *     E TEXT           it cannot fork workers, and why */
#ifndef PROTO_WARM_H
#define PROTO_WARM_H

#include "base/util.h"

#define WARM_BATCH_MAX 32 /* workers asked for at once */
#define WARM_TEXT_MAX 512

enum warm_answer_type { WARM_READY, WARM_FORKED, WARM_REFUSED };

struct warm_answer {
	enum warm_answer_type type;
	pid_t pids[WARM_BATCH_MAX];
	size_t count;
	char text[WARM_TEXT_MAX]; /* printable, cut to fit */
};

/* 0, or -EPROTO. */
int warm_answer_parse(const char *data, size_t len, struct warm_answer *ret);

#endif
