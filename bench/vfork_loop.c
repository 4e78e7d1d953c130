/* The floor for starting programs: a bare loop of vfork, exec and wait4, N at a time.
 * usage: vfork_loop COUNT AT_A_TIME PROGRAM [ARGUMENT...] */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	volatile int left = atoi(argv[1]), running = 0;
	const int limit = atoi(argv[2]);
	while (left > 0 || running > 0) {
		struct rusage usage;
		if (left > 0 && running < limit) {
			pid_t pid = vfork();
			if (pid == 0) {
				execve(argv[3], argv + 3, environ);
				_exit(127);
			}
			if (pid < 0)
				return 1;
			left--;
			running++;
			continue;
		}
		if (wait4(-1, NULL, 0, &usage) < 0)
			return 1;
		running--;
	}
	return 0;
}
