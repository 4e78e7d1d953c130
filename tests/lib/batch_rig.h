/* A batch of up to 64 orders; the test says how they end. */
#ifndef BATCH_RIG_H
#define BATCH_RIG_H

#include "base/clock.h"
#include "core/dispatch/batch.h"

#define S NS_PER_S

extern struct corepool pool;
extern struct batch batch;
extern struct worklist list;
extern struct worklist_opts list_opts; /* of it; batch_options() sets them, too */
extern struct batch_order orders[64];
extern struct batch_actions wanted; /* since the last batch_told() */

/* In two slots, with all that a test does not care about. */
struct batch_opts batch_options(void);

/* Of the first so many `orders`; what the test has not filled in of them is made plain. */
void batch_make(const struct batch_opts *opts, int cores, size_t count);
void batch_end(void);

void batch_tell(const struct batch_event *event, uint64_t now_ns);

/* "spawn0 kill1 signal1:15 finish0:timeout end": what is wanted since the last look. With
 * `indexes`, each with the index of its order: "spawn0=2 runs1=3 lay=4". */
const char *batch_told(bool indexes);

#endif
