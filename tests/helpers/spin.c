/* Executes a number of loop iterations: work whose instructions can be counted exactly. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	volatile unsigned long sum = 0;
	for (unsigned long i = 0; i < rounds; i++)
		sum += i;
	return 0;
}
