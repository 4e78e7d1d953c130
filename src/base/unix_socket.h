/* Sockets in the file system, where permissions control access. */
#ifndef BASE_UNIX_SOCKET_H
#define BASE_UNIX_SOCKET_H

#include "base/err.h"

/* A listening socket at `path`, of type SOCK_STREAM or SOCK_SEQPACKET, non-blocking and for its
 * owner only. The caller unlinks it in the end. */
int unix_listen(const char *path, int type, struct err *err);

/* A connected stream socket. To connect, and later each read and write, blocks at most this long.
 */
int unix_connect(const char *path, uint64_t timeout_ns, struct err *err);

#endif
