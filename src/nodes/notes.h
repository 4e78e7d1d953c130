/* The words for what a coordinator notes (core/rounds/note.h). */
#ifndef NODES_NOTES_H
#define NODES_NOTES_H

#include "core/rounds/note.h"

#define NOTES_TEXT_MAX 512

/* What happened, without the name of the agent: "round 2: 3 nodes, 12 workers, 1 of 3 restarts
 * used". Empty where the kind says it all. */
void notes_describe(const struct note *note, char text[NOTES_TEXT_MAX]);

#endif
