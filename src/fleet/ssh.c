#include "fleet/ssh.h"

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "proto/fleet/fleet_msg.h"
#include "proto/shell.h"

#define HOST_MAX 256
#define ALIVE_S 5 /* a host that falls silent is lost after three of these */

/* Options for OpenSSH, after the user's own, which win. Prompts of many hosts at once could not be
 * answered. */
static void add_options(const struct ssh_config *config, struct strv *argv)
{
	const char *slash = strrchr(argv->items[0], '/');
	if (!str_eq(slash ? slash + 1 : argv->items[0], "ssh"))
		return;
	strv_add(argv, "-oBatchMode=yes");
	strv_take(argv, mem_printf("-oConnectTimeout=%u",
				   (unsigned)MAX(config->timeout_ns / NS_PER_S, 1)));
	strv_take(argv, mem_printf("-oServerAliveInterval=%d", ALIVE_S));
	strv_add(argv, "-T");
}

/* For whatever login shell the user has there. The program of the same path, where it is, fits
 * best: the path of a login shell may lack it, or have another version. */
static char *remote_command(const char *program, const char *index)
{
	AUTO(buf_done) struct buf inner = BUF_INIT, outer = BUF_INIT;
	buf_append_str(&inner, "p=");
	shell_quote(&inner, program);
	buf_printf(&inner, "; [ -x \"$p\" ] || p=muster; exec \"$p\" " FLEET_COMMAND " %s", index);
	buf_append_str(&outer, "exec /bin/sh -c ");
	shell_quote(&outer, buf_str(&inner));
	return buf_take_str(&outer);
}

void ssh_command(const struct ssh_config *config, const char *host, uint32_t index,
		 struct strv *argv)
{
	AUTO_FREE char *number = mem_printf("%u", index);
	if (ssh_is_here(host)) {
		strv_add(argv, config->program);
		strv_add(argv, FLEET_COMMAND);
		strv_add(argv, number);
		return;
	}
	shell_split_plain(config->command, argv);
	add_options(config, argv);
	strv_add(argv, host);
	strv_take(argv, remote_command(config->program, number));
}

bool ssh_is_here(const char *host)
{
	char own[HOST_MAX] = "";
	gethostname(own, sizeof(own) - 1);
	return str_eq(host, "localhost") || str_eq(host, own);
}
