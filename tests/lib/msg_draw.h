/* Random messages between agents and coordinators, the same in each test. */
#ifndef MSG_DRAW_H
#define MSG_DRAW_H

#include "core/rounds/msg.h"

uint64_t draw(void);

/* Into cleared memory, so that messages can be compared as bytes. `node` is that of a JOIN. */
void draw_msg(enum msg_type type, struct node_info *node, struct msg *msg);

#endif
