/* The least a launcher can do: posix_spawn() in a loop, then reap.
 *
 * usage: bare_loop COUNT PROGRAM [ARGUMENTS...]
 */
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	int count = atoi(argv[1]);
	for (int i = 0; i < count; i++) {
		pid_t pid;
		if (posix_spawn(&pid, argv[2], NULL, NULL, argv + 2, environ) != 0)
			return 1;
	}
	for (int i = 0; i < count; i++)
		wait(NULL);
	return 0;
}
