/* usage: nap MILLISECONDS WORD: sleeps, then says the word. An order that costs as little as one
 * can. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
	long ms = argc == 3 ? strtol(argv[1], NULL, 10) : -1;
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };
	if (ms < 0)
		return 2;
	while (nanosleep(&left, &left) < 0)
		;
	return puts(argv[2]) == EOF;
}
