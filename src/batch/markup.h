/* Escapes text from outside (ids, commands) for markup. */
#ifndef BATCH_MARKUP_H
#define BATCH_MARKUP_H

#include "base/buf.h"

/* For HTML and XML, in text and in quoted attributes. Characters XML cannot hold become '?'. */
void markup_escape(struct buf *out, const char *text);

/* For a cell of a Markdown table, as code. */
void markup_markdown(struct buf *out, const char *text);

/* For a field of a CSV line: quoted where it must be. */
void markup_csv(struct buf *out, const char *text);

#endif
