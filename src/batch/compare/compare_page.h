/* The script of the page of a comparison: compare_page.js, put into the program at build time. */
#ifndef BATCH_COMPARE_PAGE_H
#define BATCH_COMPARE_PAGE_H

extern const char compare_page_script[];

#endif
