#include <muster/muster.h>

const char *muster_version(void)
{
	return MUSTER_VERSION;
}
