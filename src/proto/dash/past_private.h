/* Shared by past.c (what is read) and past_out.c (what the page is told). */
#ifndef PROTO_DASH_PAST_PRIVATE_H
#define PROTO_DASH_PAST_PRIVATE_H

#include "proto/dash/log_feed.h"
#include "proto/dash/past.h"
#include "proto/json_value.h"

struct past_worker {
	int64_t rank, local_rank, pid, code, rss_kb, step; /* step: -1: it told none */
	bool ended, stopped;
	char *status; /* NULL: unknown */
};

struct past_round {
	int64_t number, restarts, world_size, nodes;
	int64_t started_ms, ended_ms; /* 0: unknown */
	bool done, failed;
	int64_t failed_ms, failed_rank;
	char *reason; /* NULL: unknown */
	struct past_worker *workers;
	size_t worker_count, worker_cap;
};

struct past_host {
	char *name, *run_id; /* NULL: unknown */
	int64_t pid, group_rank, started_ms, seen_ms;
	bool ended;
	struct past_round *rounds;
	size_t round_count, round_cap;
	size_t worker_count; /* of all rounds */
	struct buf report;   /* checked JSON, or empty */
};

struct past {
	char *log_dir;
	struct past_host *hosts; /* what is read now is about the last */
	size_t host_count, host_cap;
	struct log_feed *feed;
};

int64_t past_int(struct json_value object, const char *key, int64_t otherwise);

#endif
