/* The client of a job's socket. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "net/http.h"

/* Accepts one client, and ends without reading. */
static pid_t fork_job_that_ends(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	strncpy(name.sun_path, path, sizeof(name.sun_path) - 1);
	AUTO(fd_close) int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(accept(listener, NULL, NULL) < 0);
	return pid;
}

TEST(a_job_that_ends_while_it_is_asked_is_an_error_and_not_a_signal)
{
	enum { MORE_THAN_A_SOCKET_HOLDS = 8 << 20 };
	char folder[] = "/tmp/http_test_XXXXXX", path[64];
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	pid_t job = fork_job_that_ends(path);
	AUTO(buf_done) struct buf body = BUF_INIT, request = BUF_INIT;
	while (buf_len(&request) < MORE_THAN_A_SOCKET_HOLDS)
		buf_append_str(&request, "/a/rather/long/path");
	ck_assert_int_lt(http_ask_unix(path, "GET", buf_str(&request), &body, NULL), 0);
	ck_assert_int_eq(waitpid(job, NULL, 0), job);
	unlink(path);
	rmdir(folder);
}
