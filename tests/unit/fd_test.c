#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

TEST(a_wait_ends_with_what_comes_or_at_its_deadline)
{
	int in, out;
	AUTO(buf_done) struct buf text = BUF_INIT;
	ck_assert_int_eq(fd_open_pipe(&in, &out, NULL), 0);
	ck_assert_int_eq(fd_wait(in, POLLIN, 0), -ETIMEDOUT);
	ck_assert_int_eq(fd_wait(in, POLLIN, clock_now_ns() + 1), -ETIMEDOUT);
	ck_assert_int_eq(write(out, "text", 4), 4);
	ck_assert_int_eq(fd_wait(in, POLLIN, NS_NEVER), 0);
	ck_assert_int_eq(fd_read_some(in, 3, &text), 3);
	ck_assert_int_eq(fd_read_some(in, 3, &text), 1);
	ck_assert_str_eq(buf_str(&text), "text");
	fd_close(&out);
	ck_assert_int_eq(fd_wait(in, POLLIN, NS_NEVER), 0);
	ck_assert_int_eq(fd_read_some(in, 3, &text), 0);
	fd_close(&in);
	ck_assert_int_eq(fd_read_some(in, 3, &text), -EBADF);
}

TEST(the_time_left_is_rounded_up_and_fits_poll)
{
	ck_assert_int_eq(clock_left_ms(5, 5), 0);
	ck_assert_int_eq(clock_left_ms(4, 5), 0);
	ck_assert_int_eq(clock_left_ms(6, 5), 1);
	ck_assert_int_eq(clock_left_ms(2 * NS_PER_MS, 0), 2);
	ck_assert_int_eq(clock_left_ms(NS_NEVER, 0), INT32_MAX);
}
