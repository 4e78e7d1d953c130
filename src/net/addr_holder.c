/* Finds the process that holds a port: the kernel's socket table gives the socket's inode and user,
 * and the descriptors in /proc give the process. Only explains a failure, so it may be slow and may
 * find nothing. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/procfs.h"
#include "base/str.h"
#include "net/addr.h"

#define SOCKET_TABLE_MAX ((size_t)64 << 20)
#define TCP_STATE_LISTEN 0x0A

struct holder {
	unsigned long inode;
	unsigned uid;
	bool found;
};

/* "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout
 * inode" */
static void search_table(const char *path, uint16_t port, struct holder *holder)
{
	AUTO(buf_done) struct buf table = BUF_INIT;
	if (file_read(path, SOCKET_TABLE_MAX, &table, NULL) < 0)
		return;
	const char *rest = buf_str(&table), *line;
	size_t len;
	while (!holder->found && (line = str_split(&rest, '\n', &len))) {
		unsigned local_port, state, uid;
		unsigned long inode;
		int n = sscanf(
			line,
			"%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %u %*d %lu",
			&local_port, &state, &uid, &inode);
		if (n == 4 && local_port == port && state == TCP_STATE_LISTEN)
			*holder = (struct holder){ .inode = inode, .uid = uid, .found = true };
	}
}

static void close_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static bool process_has(pid_t pid, const char *socket)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	AUTO(close_dir) DIR *dir = opendir(path);
	if (!dir)
		return false;
	for (const struct dirent *it; (it = readdir(dir));) {
		char target[64];
		ssize_t len = readlinkat(dirfd(dir), it->d_name, target, sizeof(target) - 1);
		if (len <= 0)
			continue;
		target[len] = '\0';
		if (str_eq(target, socket))
			return true;
	}
	return false;
}

static bool name_process(const struct holder *holder, char text[ADDR_HOLDER_MAX])
{
	char socket[48];
	snprintf(socket, sizeof(socket), "socket:[%lu]", holder->inode);
	AUTO(pids_done) struct pids all = PIDS_INIT;
	procfs_processes(&all);
	for (size_t i = 0; i < all.count; i++) {
		struct proc_stat stat;
		if (!process_has(all.items[i], socket) || procfs_stat(all.items[i], &stat) < 0)
			continue;
		snprintf(text, ADDR_HOLDER_MAX, "%s (pid %d)", stat.comm, (int)all.items[i]);
		return true;
	}
	return false;
}

void addr_port_holder(uint16_t port, char text[ADDR_HOLDER_MAX])
{
	struct holder holder = { .found = false };
	search_table("/proc/net/tcp", port, &holder);
	if (!holder.found)
		search_table("/proc/net/tcp6", port, &holder);
	if (!holder.found)
		snprintf(text, ADDR_HOLDER_MAX, "an unknown process");
	else if (!name_process(&holder, text))
		snprintf(text, ADDR_HOLDER_MAX, "a process of user %u", holder.uid);
}
