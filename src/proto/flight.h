/* Reads what PyTorch's flight recorder gives: the JSON that its worker server answers with
 * (fr_trace_json), and the pickles that it dumps. Writes records in the same form, short, so that
 * hosts can pass them on.
 *
 * Of the members of groups PyTorch tells nothing with gloo, so our hook in the worker writes them
 * to a file of its own: {"GROUP": {"desc": "dp", "ranks": [0, 1]}, ...}. */
#ifndef PROTO_FLIGHT_H
#define PROTO_FLIGHT_H

#include "base/err.h"
#include "core/collectives/record.h"
#include "proto/json_out.h"

/* Replaces what is in `ret_record`. -EPROTO: not such a text; the record is empty then. */
int flight_read_json(const char *text, size_t len, struct record *ret_record, struct err *err);
int flight_read_pickle(const void *data, size_t len, struct record *ret_record, struct err *err);

/* Adds the entries of a text like that of flight_read_json(): what our hook in the worker notes
 * because the recorder leaves it out. -EPROTO: not such a text; entries before the fault stay. */
int flight_read_more(const char *text, size_t len, struct record *record, struct err *err);

/* Adds the members of groups. -EPROTO: not such a text; what was read before stays. */
int flight_read_groups(const char *text, size_t len, struct record *record, struct err *err);

/* An object that flight_read_json() reads. */
void flight_write(struct json_out *out, const char *key, const struct record *record);

#endif
