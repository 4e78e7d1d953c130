/* Goes into D state for good: the parent of a vfork sleeps so until its child is gone. */
#include <unistd.h>

int main(void)
{
	if (vfork() == 0)
		for (;;)
			pause();
	return 0;
}
