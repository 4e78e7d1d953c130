/* Under what a result is filed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/archive/archive.h"
#include "batch/archive/run_program.h"

#define CPUINFO_MAX ((size_t)4 << 20)

void archive_key_done(struct archive_key *key)
{
	free(key->version);
	free(key->host_class);
	free(key->configuration);
	*key = (struct archive_key){ .version = NULL };
}

/* "AMD EPYC 7543 32-Core Processor" with 8 CPUs: "x86_64 AMD EPYC 7543 32-Core Processor, 8 CPUs".
 * The name of the host is not part of it: hosts of one class replace each other. */
static char *host_class(void)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	struct utsname name;
	const char *model = "";
	if (file_read("/proc/cpuinfo", CPUINFO_MAX, &data, NULL) == 0)
		model = strstr(buf_str(&data), "model name");
	const char *colon = model && *model ? strchr(model, ':') : NULL;
	AUTO_FREE char *text =
		colon ? mem_strndup(colon + 2, strcspn(colon + 2, "\n")) : mem_strdup("processor");
	return mem_printf("%s %s, %ld CPUs", uname(&name) == 0 ? name.machine : "", text,
			  sysconf(_SC_NPROCESSORS_ONLN));
}

/* The commit that is checked out here, and its time. False outside of a repository. A tree with
 * changes that are not committed is another version: "-dirty". */
static bool git_version(char **ret_version, int64_t *ret_time)
{
	AUTO(buf_done) struct buf shown = BUF_INIT, changed = BUF_INIT;
	char *show[] = { "git", "show", "-s", "--format=%H %ct", "HEAD", NULL };
	char *status[] = { "git", "status", "--porcelain", "--untracked-files=no", NULL };
	if (program_output(show, NULL, true, &shown, NULL) < 0)
		return false;
	AUTO_FREE char *line = buf_take_str(&shown);
	line[strcspn(line, "\n")] = '\0';
	char *space = strchr(line, ' ');
	if (!space || str_to_i64(space + 1, ret_time) < 0)
		return false;
	*space = '\0';
	bool dirty = program_output(status, NULL, true, &changed, NULL) == 0 && buf_len(&changed);
	*ret_version = mem_printf("%s%s", line, dirty ? "-dirty" : "");
	return true;
}

int archive_key_make(struct archive_key *key, const struct archive_options *options,
		     const char *configuration, struct err *err)
{
	*key = (struct archive_key){
		.time_s = (int64_t)(clock_wall_ns() / NS_PER_S),
		.host_class = options->host_class ? mem_strdup(options->host_class) : host_class(),
		.configuration =
			mem_strdup(options->configuration ? options->configuration : configuration),
	};
	if (options->version)
		key->version = mem_strdup(options->version);
	else if (!git_version(&key->version, &key->time_s))
		return err_set(err, EINVAL,
			       "this is not a git repository with a commit: name the version "
			       "with --version-label");
	return 0;
}
