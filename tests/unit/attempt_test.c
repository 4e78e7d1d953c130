#include "unit.h"

#include "core/worker/attempt.h"

#define ENDS(how, ...) \
	ck_assert_str_eq(attempt_end_name(attempt_decide(&(struct attempt_facts){ __VA_ARGS__ })), \
			 attempt_end_name(how))

TEST(an_attempt_ends_as_the_first_fact_of_the_list_says)
{
	ENDS(ATTEMPT_DONE, .done = true);
	ENDS(ATTEMPT_DONE, .done = true, .stop_asked = true, .restart_asked = true, .blamed = true);
	ENDS(ATTEMPT_FAILED, .failed = true);
	ENDS(ATTEMPT_FAILED, .failed = true, .stop_asked = true, .restart_asked = true);
	ENDS(ATTEMPT_STOPPED, .stop_asked = true);
	ENDS(ATTEMPT_STOPPED, .stop_asked = true, .restart_asked = true, .blamed = true);
	ENDS(ATTEMPT_RESTARTED, .restart_asked = true);
	ENDS(ATTEMPT_RESTARTED, .restart_asked = true, .blamed = true);
	ENDS(ATTEMPT_FAILED, .blamed = true);
}

TEST(an_attempt_that_nothing_else_explains_ended_because_nodes_came_or_went)
{
	ENDS(ATTEMPT_REGROUP, .done = false);
}
