#include "batch/compare/compare_report.h"
#include "batch/markup.h"
#include "core/batch/stats.h"

static void put_case(struct buf *out, const char *metric, const struct sample_order *order)
{
	buf_append_str(out, "  <testcase classname=\"compare.");
	buf_append_str(out, metric);
	buf_append_str(out, "\" name=\"");
	markup_escape(out, compare_order_name(order));
	buf_append_str(out, "\"");
}

static void put_row(struct buf *out, const struct compare_row *row)
{
	put_case(out, metric_table[row->metric].name, row->b_order);
	if (!row->regression) {
		buf_append_str(out, "/>\n");
		return;
	}
	char a[METRIC_TEXT_MAX], b[METRIC_TEXT_MAX];
	metric_format(row->metric, stats_median(row->a, row->m), a);
	metric_format(row->metric, stats_median(row->b, row->n), b);
	AUTO(buf_done) struct buf verdict = BUF_INIT;
	compare_verdict(row, &verdict);
	buf_append_str(out, ">\n    <failure message=\"");
	markup_escape(out, buf_str(&verdict));
	buf_printf(out, "\">%s in A, %s in B: %.4f times (%.4f to %.4f)</failure>\n  </testcase>\n",
		   a, b, row->ratio.value, row->ratio.low, row->ratio.high);
}

void compare_junit(const struct comparison *c, struct buf *out)
{
	buf_printf(
		out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuite name=\"muster compare\" tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n",
		c->row_count + c->broken_count, c->regressions);
	for (size_t i = 0; i < c->row_count; i++)
		put_row(out, &c->rows[i]);
	for (size_t i = 0; i < c->broken_count; i++) {
		put_case(out, "runs", c->broken[i]);
		buf_append_str(
			out,
			">\n    <failure message=\"every attempt failed in B\"/>\n  </testcase>\n");
	}
	buf_append_str(out, "</testsuite>\n");
}
