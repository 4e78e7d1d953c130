/* Who has the other end of a connection, as far as the kernel can tell: the user of a process on
 * this host and in this network namespace. Other hosts, containers and pods with a network of their
 * own are not known here; what they may do is for addresses, tokens and munge to decide. */
#ifndef BASE_PEER_USER_H
#define BASE_PEER_USER_H

#include <sys/socket.h>
#include <sys/types.h>

#include "base/util.h"

#define PEER_USER_VARIABLE "MUSTER_ANY_USER" /* "1" lets every user of this host connect */

#define PEER_USER_TEXT_MAX 96

/* True if the process at the other end of this accepted connection is known to be of a user who is
 * neither this process's, nor root, nor the user of a process below this one (a worker may have
 * become somebody else). ret_text says so, with the remedy; it is "" if that process has left, for
 * then the kernel does not know any more whose it was.
 *
 * Seven system calls for a peer on this host, eight for one elsewhere; processes are looked at only
 * for a peer that would be refused, at most PEER_USER_LOOKS_PER_S times a second. Any thread. */
#define PEER_USER_LOOKS_PER_S 10
bool peer_is_other_user(int fd, char ret_text[PEER_USER_TEXT_MAX]);

#endif
