#include "batch/compare/compare_page.h"

__asm__(".pushsection .rodata\n"
	".globl compare_page_script\n"
	".hidden compare_page_script\n"
	"compare_page_script:\n"
	".incbin \"src/batch/compare/compare_page.js\"\n"
	".byte 0\n"
	".popsection\n");
