/* Log files, opened and written by their own thread, because a file system can be slow for minutes:
 * a full disk, a quota, an NFS server that is gone.
 *
 * Callers pass bytes on without waiting for the disk. A slow disk makes them wait (that
 * back-pressure slows the workers down); a disk without progress for DISK_HANG_NS does not: from
 * then on bytes count as missing until it recovers. A failed write costs only its own bytes; the
 * next one is tried again, so a log continues when space is freed. Nothing here ever ends a job.
 *
 * All functions except disk_missing() belong to one thread, the caller's. */
#ifndef SYS_DISK_H
#define SYS_DISK_H

#include "base/buf.h"
#include "base/clock.h"

#define DISK_HANG_NS (10 * NS_PER_S)
#define DISK_BACKLOG_MAX ((size_t)4 * 1024 * 1024)

struct disk;
struct disk_file;

/* Reports the first trouble, once, from either thread. */
typedef void disk_trouble_fn(void *arg, const char *text);

/* `max_size` of a file before it is renamed to NAME.1 and begun again; 0: no limit. `hang_ns` is
 * DISK_HANG_NS except in tests. If no thread can be started, the disk counts as hung. */
struct disk *disk_new(uint64_t max_size, uint64_t hang_ns, disk_trouble_fn *trouble, void *arg);

/* Waits until the kernel has everything, or until the disk hangs. */
void disk_flush(struct disk *disk);

/* Call disk_flush() first. A hung disk keeps its thread and its memory. */
void disk_free(struct disk *disk);

/* Creates or empties the file, in the background. All that open the same path share one file. */
struct disk_file *disk_open(struct disk *disk, const char *path);

/* The same for an open descriptor, with a name for messages: written to as it is, neither emptied
 * nor renamed. Takes the descriptor. */
struct disk_file *disk_adopt(struct disk *disk, const char *name, int fd);

/* The same, to write behind what the file has. */
struct disk_file *disk_append(struct disk *disk, const char *path);

void disk_write(struct disk *disk, struct disk_file *file, const void *data, size_t len);
/* Never waits: bytes that find no room count as missing. */
void disk_try_write(struct disk *disk, struct disk_file *file, const void *data, size_t len);
void disk_close(struct disk *disk, struct disk_file *file);

/* Appends "PATH: N bytes are missing (No space left on device)" for every file with losses, one per
 * line. Any thread. */
void disk_missing(struct disk *disk, struct buf *out);

#endif
