/* The text of the template of warm workers: python/muster/_uncaught.py and _template.py, put into
 * the program at build time, so that it needs no installed package. */
#ifndef RUN_PRELOAD_SOURCE_H
#define RUN_PRELOAD_SOURCE_H

extern const char preload_source[], preload_source_end[];

#endif
