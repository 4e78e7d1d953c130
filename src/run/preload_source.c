#include "run/preload_source.h"

__asm__(".pushsection .rodata\n"
	".globl preload_source, preload_source_end\n"
	".hidden preload_source, preload_source_end\n"
	"preload_source:\n"
	".incbin \"python/muster/_uncaught.py\"\n"
	".incbin \"python/muster/_flight.py\"\n"
	".incbin \"python/muster/_template.py\"\n"
	"preload_source_end:\n"
	".byte 0\n"
	".popsection\n");
