/* Log files, opened and written by a thread of their own, because a file system can be slow for
 * minutes: a full disk, a quota, an NFS server that is gone.
 *
 * Callers hand bytes over and go on. A slow disk makes them wait (that is the back-pressure that
 * slows the writer down); a disk on which nothing has moved for DISK_HANG_NS does not: from then on
 * bytes are counted as missing until it moves again. A write that fails costs its own bytes only;
 * the next one is tried again, so a log goes on when space is freed. Nothing here ever ends a job.
 *
 * All functions but disk_missing() belong to one thread, the caller's.
 */
#ifndef SYS_DISK_H
#define SYS_DISK_H

#include "base/buf.h"
#include "base/clock.h"

#define DISK_HANG_NS (10 * NS_PER_S)
#define DISK_BACKLOG_MAX ((size_t)4 * 1024 * 1024)

struct disk;
struct disk_file;

/* Says once what went wrong first, from either thread. */
typedef void disk_trouble_fn(void *arg, const char *text);

/* `max_size` of a file before it is set aside as NAME.1 and begun again; 0: no limit. `hang_ns` is
 * DISK_HANG_NS but for tests. Where no thread can be had the disk counts as one that hangs. */
struct disk *disk_new(uint64_t max_size, uint64_t hang_ns, disk_trouble_fn *trouble, void *arg);

/* Waits until everything is on its way to the disk, or until the disk has hung. */
void disk_flush(struct disk *disk);

/* Call disk_flush() first. A disk that hangs keeps its thread and its memory: they cannot be
 * had. */
void disk_free(struct disk *disk);

/* Creates or empties the file, in the background. One file is shared by all who open the same
 * path. */
struct disk_file *disk_open(struct disk *disk, const char *path);

/* The same for a descriptor that is open already, under a name for messages: written to as it is,
 * neither emptied nor set aside. Takes the descriptor. */
struct disk_file *disk_adopt(struct disk *disk, const char *name, int fd);
void disk_write(struct disk *disk, struct disk_file *file, const void *data, size_t len);
void disk_close(struct disk *disk, struct disk_file *file);

/* Appends "PATH: N bytes are missing (No space left on device)" for every file that lost something,
 * one a line. Any thread. */
void disk_missing(struct disk *disk, struct buf *out);

#endif
