/* Shared by pages.c (probes, metrics, the state) and pages_dash.c (the page of the whole job). */
#ifndef RUN_TELL_PAGES_PRIVATE_H
#define RUN_TELL_PAGES_PRIVATE_H

#include "run/tell/pages.h"

const char *pages_state_name(const struct pages *pages); /* of the group */
bool pages_is_healthy(const struct pages *pages);
uint32_t pages_restarts(const struct pages *pages);
const char *pages_last_hang(const struct history *history); /* NULL: none */

/* Members of the open object of a worker: its command, environment and CPUs. */
void pages_put_detail(const struct pages *pages, size_t local_rank, struct json_out *out);

void pages_open_dash(struct pages *pages); /* when there is a server */

/* ---- routes ---- */

void pages_show_page(void *arg, struct http_reply *reply);
void pages_show_css(void *arg, struct http_reply *reply);
void pages_show_script(void *arg, struct http_reply *reply);
void pages_show_single(void *arg, struct http_reply *reply);
void pages_open_stream(void *arg, struct http_stream *stream);
void pages_open_log(void *arg, struct http_stream *stream);
void pages_take_wish(void *arg, struct http_reply *reply);
void pages_tell_address(void *arg, struct http_reply *reply);

#endif
