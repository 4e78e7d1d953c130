#include "cli/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "net/token.h"
#include "proto/fleet/fleet_msg.h"
#include "proto/shell.h"

#define SECRET_BYTES 32

int hosts_check(const struct hosts_options *o, struct err *err)
{
	AUTO(strv_done) struct strv words = STRV_INIT;
	if (!shell_split_plain(o->ssh, &words) || words.count == 0)
		return err_set(
			err, EINVAL,
			"--ssh: '%.64s' is not a command of plain words; put it into a script",
			o->ssh);
	if (o->fanout < 1 || o->fanout > HOSTS_MAX)
		return err_set(err, EINVAL, "--ssh-fanout: %" PRId64 " is not from 1 to %d",
			       o->fanout, HOSTS_MAX);
	if (o->timeout_ns == 0)
		return err_set(err, EINVAL, "--ssh-timeout: it must be more than 0");
	return 0;
}

int hosts_read(const struct hosts_options *o, struct hostfile *hosts, struct err *err)
{
	int r = 0;
	if (o->list && (r = hostfile_add_list(hosts, o->list, err)) < 0)
		return err_wrap(err, "--hosts");
	if (o->file) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		r = file_read(o->file, HOST_FILE_MAX, &text, err);
		if (r == 0)
			r = hostfile_add_text(hosts, (const char *)buf_data(&text), buf_len(&text),
					      err);
		if (r < 0)
			return err_wrap(err, "--hostfile=%s", o->file);
	}
	return hosts->count ? 0 : err_set(err, EINVAL, "--hostfile=%s: it names no host", o->file);
}

char *hosts_secret(void)
{
	const char *given = getenv(TOKEN_VARIABLE);
	if (given && *given)
		return mem_strdup(given);
	unsigned char bytes[SECRET_BYTES];
	AUTO(buf_done) struct buf text = BUF_INIT;
	random_bytes(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		buf_printf(&text, "%02x", bytes[i]);
	return buf_take_str(&text);
}

int hosts_program(char ret_path[HOSTS_PROGRAM_MAX], struct err *err)
{
	ssize_t len = readlink("/proc/self/exe", ret_path, HOSTS_PROGRAM_MAX - 1);
	if (len < 0)
		return err_set(err, errno, "/proc/self/exe: %m");
	ret_path[len] = '\0';
	return 0;
}

char *hosts_take_name(void)
{
	const char *name = getenv(FLEET_VARIABLE);
	if (!name)
		return NULL;
	char *host = mem_strdup(name);
	unsetenv(FLEET_VARIABLE);
	log_set_host(host);
	fcntl(FLEET_FD_LIFELINE, F_SETFD, FD_CLOEXEC);
	fcntl(FLEET_FD_REPORT, F_SETFD, FD_CLOEXEC);
	return host;
}
