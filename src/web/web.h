/* The page that people see in a browser: plain HTML, CSS and JavaScript from this folder, put into
 * the program at build time.
 *
 * It loads nothing from elsewhere, and its scripts make text of what they are told, never markup
 * (textContent). */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include "base/buf.h"
#include "base/bytes.h"

/* Of the page as it is served: what it needs comes from where it comes from, and nothing else. */
#define WEB_POLICY \
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " \
	"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

enum web_file {
	WEB_PAGE,
	WEB_STYLE,
	WEB_SCRIPT,
	WEB_BATCH_PAGE, /* of a batch; has the same style */
	WEB_BATCH_SCRIPT,
	WEB_FILE_COUNT,
};

struct bytes web_text(enum web_file file);
const char *web_type(enum web_file file); /* for Content-Type */

/* Appends the page as one file with its style, script and data, which is JSON. No other script runs
 * in it: the policy that it carries names this one by its digest. */
#define WEB_NO_DATA "null"
void web_put_single(struct bytes json, struct buf *out);

#endif
