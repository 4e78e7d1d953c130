#include "core/lines/screen.h"

#define WIPE_LINE "\r\033[K"

static const enum screen_state state_after[] = {
	[LINE_NEWLINE] = SCREEN_FRESH,
	[LINE_RETURN] = SCREEN_RETURNED,
	[LINE_OPEN] = SCREEN_CUT,
};

/* Leaves the line that another writer has open. */
static void leave_line(struct screen *screen, struct buf *out)
{
	bool can_be_drawn_again = screen->state == SCREEN_SHOWN || screen->state == SCREEN_RETURNED;
	if (screen->state != SCREEN_FRESH)
		buf_append_str(out, screen->terminal && can_be_drawn_again ? WIPE_LINE : "\n");
	screen->state = SCREEN_FRESH;
	screen->shown = 0;
}

/* An empty piece that only returns (most bars begin with one) needs no prefix: its text follows. */
static bool wants_prefix(const struct screen *screen, const struct line *line)
{
	if (line->end == LINE_RETURN && line->len == 1)
		return false;
	return screen->state == SCREEN_FRESH || screen->state == SCREEN_RETURNED;
}

void screen_put(struct screen *screen, uint64_t writer, const char *prefix, const struct line *line,
		struct buf *out)
{
	if (screen->owner != writer)
		leave_line(screen, out);
	if (wants_prefix(screen, line))
		buf_append_str(out, prefix);
	buf_append(out, line->text + screen->shown, line->len - screen->shown);
	screen->shown = 0;
	screen->state = state_after[line->end];
	screen->owner = writer;
}

void screen_show(struct screen *screen, uint64_t writer, const char *prefix,
		 const struct buf *partial, struct buf *out)
{
	if (!screen->terminal || buf_len(partial) == 0)
		return;
	if (screen->owner != writer)
		leave_line(screen, out);
	if (screen->state == SCREEN_CUT)
		return;
	if (screen->state != SCREEN_SHOWN)
		buf_append_str(out, prefix);
	buf_append(out, buf_data(partial) + screen->shown, buf_len(partial) - screen->shown);
	screen->shown = buf_len(partial);
	screen->state = SCREEN_SHOWN;
	screen->owner = writer;
}
