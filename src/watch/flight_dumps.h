/* Reads flight records that ranks have dumped into files, long after the job or on another host:
 * pickles as PyTorch writes them (TORCH_FR_DUMP_TEMP_FILE), or the JSON of its server. */
#ifndef WATCH_FLIGHT_DUMPS_H
#define WATCH_FLIGHT_DUMPS_H

#include "base/err.h"
#include "watch/flight_fetch.h"

#define FLIGHT_DUMPS_RANK_MAX 100000

/* `path` is a directory, or the beginning of names up to the rank: "/tmp/nccl_trace_rank_". An
 * answer for each rank up to the highest that has a dump or is in a group; one without a dump says
 * so. The caller frees `ret_answers` after flight_answers_done(). -ENOENT: there is no dump. */
int flight_dumps_read(const char *path, struct flight_answer **ret_answers, size_t *ret_count,
		      struct err *err);

#endif
