/* Which libraries an ELF program is linked with, as it says itself. */
#ifndef PROTO_ELF_H
#define PROTO_ELF_H

#include <sys/types.h>

#include "base/strv.h"

#define ELF_SEGMENTS_MAX 128 /* a linker makes about 13 */
#define ELF_DYNAMIC_MAX 1024 /* entries; a linker makes about 30, and one a library */
#define ELF_NAME_MAX 256     /* with its NUL */

/* Reads `len` bytes of the file from `at` on: how many there were, or negative. */
typedef ssize_t elf_read(void *arg, uint64_t at, void *ret_bytes, size_t len);

/* Adds the names (DT_NEEDED), in their order; none if it is static. -ENOEXEC: no ELF file with this
 * machine's order of bytes; -EBADMSG: its parts contradict each other or are beyond the limits,
 * and nothing is added. */
int elf_needed(elf_read *read, void *arg, struct strv *ret_names);

#endif
