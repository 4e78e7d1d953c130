#include "sys/engine_ask.h"

#include <unistd.h>

#include "base/fd.h"

#define HOSTS_FILE_MAX ((size_t)1 << 20)

int engine_ask(struct engine_asked asked, struct engine_settings *ret_settings, struct err *err)
{
	AUTO(buf_done) struct buf hosts_file = BUF_INIT;
	if (engine_is_here(environ) &&
	    file_read("/etc/hosts", HOSTS_FILE_MAX, &hosts_file, NULL) == 0)
		asked.hosts_file = buf_str(&hosts_file);
	return engine_detect(environ, &asked, ret_settings, err);
}
