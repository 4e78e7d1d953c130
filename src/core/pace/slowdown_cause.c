#include "core/pace/slowdown_cause.h"

#include "base/clock.h"

#define SHARE_MIN 0.1	/* of the time: less explains no lag that matters */
#define FAULTS_MIN 10.0 /* a second */

static double share(uint64_t before_ns, uint64_t now_ns, double span_ns)
{
	return now_ns > before_ns ? (double)(now_ns - before_ns) / span_ns : 0;
}

static void say(struct buf *out, double part, const char *what)
{
	if (part >= SHARE_MIN)
		buf_printf(out, "%sfor %.0f %% of the time %s", buf_len(out) ? "; " : "",
			   100 * part, what);
}

void slowdown_explain(const struct slowdown *before, const struct slowdown *now, uint32_t cpus,
		      struct buf *out)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	double span_ns = (double)(now->at_ns - MIN(before->at_ns, now->at_ns));
	if (span_ns > 0) {
		double faults = share(before->major_faults, now->major_faults, span_ns) * NS_PER_S;
		say(&text, share(before->throttled_ns, now->throttled_ns, span_ns),
		    "its cgroup had used up its CPU quota");
		say(&text, share(before->wait_ns, now->wait_ns, span_ns), "it waited for a CPU");
		say(&text, share(before->steal_ns, now->steal_ns, span_ns * MAX(cpus, 1U)),
		    "the hypervisor gave the CPUs of its host to others");
		if (faults >= FAULTS_MIN)
			buf_printf(&text,
				   "%s%.0f times a second it waited for memory from the disk",
				   buf_len(&text) ? "; " : "", faults);
	}
	buf_append_str(out, buf_len(&text)
				    ? buf_str(&text)
				    : "it did not want for a CPU: its work, or its input, takes "
				      "longer");
}
