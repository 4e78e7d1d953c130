/* Parses the values of --redirects, --tee and the options around them. */
#ifndef CORE_LINES_STREAM_MAP_H
#define CORE_LINES_STREAM_MAP_H

#include "base/strv.h"
#include "base/err.h"

enum stream_mask {
	STREAM_STDOUT = 1,
	STREAM_STDERR = 2,
	STREAM_BOTH = STREAM_STDOUT | STREAM_STDERR,
};

/* "0" to "3" for all ranks, or "RANK:MASK,RANK:MASK"; ranks not listed get 0, those beyond `nproc`
 * are ignored. Fills ret_masks[nproc]. */
int stream_map_parse(const char *text, uint32_t nproc, uint8_t *ret_masks, struct err *err);

/* "0,2,5": sets ret_chosen[nproc] for the ranks listed; an empty text chooses all. */
int stream_ranks_parse(const char *text, uint32_t nproc, bool *ret_chosen, struct err *err);

/* "a,b,,c" is "a" and "b,c"; an empty text is one empty item. */
void stream_filters_parse(const char *text, struct strv *ret_filters);

#endif
