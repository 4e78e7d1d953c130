#include "unit.h"

#include <locale.h>
#include <string.h>

#include "base/clock.h"
#include "batch/progress.h"

static struct progress sample(void)
{
	return (struct progress){ .done = 12,
				  .failed = 1,
				  .running = 2,
				  .total = 100,
				  .elapsed_ns = 34 * NS_PER_S,
				  .eta_ns = 200 * NS_PER_S,
				  .order_count = 2,
				  .orders = { { "sleep 3; a very long command that goes on and on",
						5 * NS_PER_S },
					      { "./b\n\xff", NS_PER_S } } };
}

static const char *line(const struct progress *progress, int columns)
{
	static struct buf out;
	buf_clear(&out);
	progress_render(progress, columns, false, &out);
	return buf_str(&out);
}

TEST(the_line_never_reaches_the_last_column)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	struct progress progress = sample();
	for (int columns = 1; columns < 300; columns++)
		ck_assert_msg((int)strlen(line(&progress, columns)) < MAX(columns, 20), "%d: %s",
			      columns, line(&progress, columns));
}

TEST(the_line_shows_counts_times_and_orders)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	struct progress progress = sample();
	ck_assert_str_eq(
		line(&progress, 80),
		"[=>        ] 12/100, 1 failed, 2 running, 34 s, ETA 3 min 20 s: sleep 3;  (5 s)");
	ck_assert_ptr_nonnull(strstr(line(&progress, 240), "goes on and on (5 s), ./b?? (1 s)"));
	ck_assert_str_eq(line(&progress, 20), "12/100");
	progress.eta_ns = NS_NEVER;
	ck_assert_ptr_null(strstr(line(&progress, 80), "ETA"));
}
