#include "web/web.h"

#include <sodium.h>
#include <string.h>

extern const unsigned char web_page[], web_page_end[], web_style[], web_style_end[], web_script[],
	web_script_end[], web_batch_page[], web_batch_page_end[], web_batch_script[],
	web_batch_script_end[];

__asm__(".pushsection .rodata\n"
	".globl web_page, web_page_end, web_style, web_style_end, web_script, web_script_end\n"
	".hidden web_page, web_page_end, web_style, web_style_end, web_script, web_script_end\n"
	".globl web_batch_page, web_batch_page_end, web_batch_script, web_batch_script_end\n"
	".hidden web_batch_page, web_batch_page_end, web_batch_script, web_batch_script_end\n"
	"web_page:\n"
	".incbin \"src/web/page.html\"\n"
	"web_page_end:\n"
	"web_style:\n"
	".incbin \"src/web/page.css\"\n"
	"web_style_end:\n"
	"web_script:\n"
	".incbin \"src/web/base.js\"\n"
	".incbin \"src/web/board.js\"\n"
	".incbin \"src/web/grid.js\"\n"
	".incbin \"src/web/chart.js\"\n"
	".incbin \"src/web/log.js\"\n"
	".incbin \"src/web/views.js\"\n"
	".incbin \"src/web/main.js\"\n"
	"web_script_end:\n"
	"web_batch_page:\n"
	".incbin \"src/web/batch.html\"\n"
	"web_batch_page_end:\n"
	"web_batch_script:\n"
	".incbin \"src/web/base.js\"\n"
	".incbin \"src/web/chart.js\"\n"
	".incbin \"src/web/batch.js\"\n"
	"web_batch_script_end:\n"
	".popsection\n");

struct bytes web_text(enum web_file file)
{
	const struct {
		const unsigned char *begin, *end;
	} files[] = {
		[WEB_PAGE] = { web_page, web_page_end },
		[WEB_STYLE] = { web_style, web_style_end },
		[WEB_SCRIPT] = { web_script, web_script_end },
		[WEB_BATCH_PAGE] = { web_batch_page, web_batch_page_end },
		[WEB_BATCH_SCRIPT] = { web_batch_script, web_batch_script_end },
	};
	static_assert(ARRAY_LEN(files) == WEB_FILE_COUNT, "every file has a text");
	return bytes_of(files[file].begin, (size_t)(files[file].end - files[file].begin));
}

const char *web_type(enum web_file file)
{
	static const char *const types[] = {
		[WEB_PAGE] = "text/html; charset=utf-8",
		[WEB_STYLE] = "text/css; charset=utf-8",
		[WEB_SCRIPT] = "text/javascript; charset=utf-8",
		[WEB_BATCH_PAGE] = "text/html; charset=utf-8",
		[WEB_BATCH_SCRIPT] = "text/javascript; charset=utf-8",
	};
	static_assert(ARRAY_LEN(types) == WEB_FILE_COUNT, "every file has a type");
	return types[file];
}

static void put_policy(struct buf *out)
{
	struct bytes script = web_text(WEB_SCRIPT);
	unsigned char digest[crypto_hash_sha256_BYTES];
	char text[sodium_base64_ENCODED_LEN(sizeof(digest), sodium_base64_VARIANT_ORIGINAL)];
	crypto_hash_sha256(digest, script.data, script.len);
	sodium_bin2base64(text, sizeof(text), digest, sizeof(digest),
			  sodium_base64_VARIANT_ORIGINAL);
	buf_printf(out,
		   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		   "script-src 'sha256-%s'; style-src 'unsafe-inline'; img-src data:; "
		   "base-uri 'none'; form-action 'none'\">",
		   text);
}

/* In JSON a "<" stands in texts only; written like this it cannot end the element. */
static void put_data(struct bytes json, struct buf *out)
{
	for (size_t i = 0; i < json.len; i++)
		if (json.data[i] == '<')
			buf_append_str(out, "\\u003c");
		else
			buf_append_char(out, (char)json.data[i]);
}

/* Copies the page up to `mark`, and moves on behind it. */
static void put_until(struct bytes *page, const char *mark, struct buf *out)
{
	const unsigned char *at = memmem(page->data, page->len, mark, strlen(mark));
	size_t len = at ? (size_t)(at - page->data) : page->len;
	buf_append(out, page->data, len);
	len = at ? len + strlen(mark) : len;
	*page = bytes_of(page->data + len, page->len - len);
}

void web_put_single(struct bytes json, struct buf *out)
{
	struct bytes page = web_text(WEB_PAGE), style = web_text(WEB_STYLE),
		     script = web_text(WEB_SCRIPT);
	put_until(&page, "<link rel=\"stylesheet\" href=\"page.css\">", out);
	put_policy(out);
	buf_append_str(out, "<style>");
	buf_append(out, style.data, style.len);
	buf_append_str(out, "</style>");
	put_until(&page, "<script src=\"page.js\" defer></script>", out);
	buf_append_str(out, "<script type=\"application/json\" id=\"saved\">");
	put_data(json, out);
	buf_append_str(out, "</script>\n<script>");
	buf_append(out, script.data, script.len);
	buf_append_str(out, "</script>");
	buf_append(out, page.data, page.len);
}
