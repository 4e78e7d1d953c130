/* muster top: a screen that lives, with the workers of one job or of all jobs of this host.
 *
 * What it shows it asks of `muster status --json`, as a child: keys and the size of the terminal
 * are answered at once while a host lets it wait. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/piped.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/jobs/asker.h"
#include "cli/jobs/top_view.h"
#include "core/worker/exit_code.h"

extern const struct command command_top;

#define PERIOD_DEFAULT_NS (2 * NS_PER_S)
#define PERIOD_MIN_NS (NS_PER_S / 10)
#define ENTER "\033[?1049h\033[?25l" /* the other screen, without a cursor */
#define LEAVE "\033[?25h\033[?1049l"

struct top_options {
	bool once;
	int sort;
	uint64_t period_ns;
	const char *timeout;
	struct asker_options narrow;
};

static const struct opt top_opts[] = {
	OPT_FLAG("once", NULL, struct top_options, once, "print one picture and end"),
	OPT_CHOICE("sort", NULL, struct top_options, sort, top_sorts,
		   "the order of the workers (default: rank)"),
	OPT_DURATION("period", NULL, struct top_options, period_ns, "TIME",
		     "how often to look (default 2s)"),
	ASKER_OPTS(struct top_options, narrow),
	OPT_STR("timeout", NULL, struct top_options, timeout, "TIME",
		"how long to wait for the answers of other hosts (default 10s)"),
	OPT_END,
};

struct top {
	struct top_view view;
	struct strv status; /* the command that is asked */
	uint64_t period_ns, next_ns;
	struct piped child; /* under way if `out` is open */
	struct buf answer, complaints;
	int signal_fd;
	bool shown; /* a picture with answers */
	bool over;
	int status_code;
};

/* ---- asking ---- */

static void add_option(struct strv *argv, const char *name, const char *value)
{
	if (value)
		strv_take(argv, mem_printf("--%s=%s", name, value));
}

static void make_command(const struct top_options *o, const char *job, struct strv *argv)
{
	strv_add(argv, "/proc/self/exe");
	strv_add(argv, "status");
	strv_add(argv, "--json");
	add_option(argv, "host", o->narrow.host);
	add_option(argv, "rank", o->narrow.ranks);
	add_option(argv, "rdzv-endpoint", o->narrow.place.endpoint);
	add_option(argv, "token-file", o->narrow.place.token_file);
	add_option(argv, "timeout", o->timeout);
	if (o->narrow.here)
		strv_add(argv, "--here");
	if (job) {
		strv_add(argv, "--");
		strv_add(argv, job);
	}
}

static int start_asking(struct top *top, struct err *err)
{
	const struct piped_spec spec = { .argv = strv_argv(&top->status),
					 .envp = environ,
					 .deaf = true };
	buf_clear(&top->answer);
	buf_clear(&top->complaints);
	top->next_ns = ns_add(clock_now_ns(), top->period_ns);
	return piped_start(&spec, &top->child, err);
}

/* The first line of what it said on stderr, without the name of the command. */
static void note_complaint(struct top *top)
{
	const char *text = buf_str(&top->complaints);
	const char *colon = strstr(text, ": ");
	if (colon && str_starts(text, "muster"))
		text = colon + 2;
	snprintf(top->view.notice, sizeof(top->view.notice), "%.*s", (int)strcspn(text, "\n"),
		 text);
	str_make_printable(top->view.notice);
}

static void take_answer(struct top *top)
{
	struct err err = ERR_INIT;
	int status = child_wait(top->child.pid);
	fd_close(&top->child.out);
	fd_close(&top->child.err);
	fd_close(&top->child.pidfd);
	top->status_code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_CODE_SYSTEM;
	note_complaint(top);
	const char *text = buf_str(&top->answer);
	if (strlen(text) == 0)
		return;
	if (top_view_take(&top->view, text, strlen(text), clock_now_ns(), &err) < 0)
		snprintf(top->view.notice, sizeof(top->view.notice), "%s", err.msg);
	else
		top->shown = true;
}

/* False: it has ended. */
static bool read_more(int fd, struct buf *into)
{
	char chunk[64 << 10];
	ssize_t n = read(fd, chunk, sizeof(chunk));
	if (n > 0)
		buf_append(into, chunk, (size_t)n);
	return n > 0 || (n < 0 && errno == EINTR);
}

/* ---- the terminal ---- */

static struct top_screen terminal_screen(void)
{
	struct winsize size = { 0 };
	const char *no_colour = getenv("NO_COLOR");
	struct top_screen screen = {
		.width = 80, .height = 24, .terminal = true, .colour = !no_colour || !*no_colour
	};
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
		screen.width = size.ws_col;
		screen.height = size.ws_row;
	}
	return screen;
}

static void draw(struct top *top)
{
	AUTO(buf_done) struct buf picture = BUF_INIT;
	top_view_draw(&top->view, terminal_screen(), &picture);
	if (fd_write_all(STDOUT_FILENO, buf_data(&picture), buf_len(&picture)) < 0)
		top->over = true;
}

/* What the terminal sends for a key. */
static const struct {
	const char *bytes;
	enum top_key key;
} keys[] = {
	{ "\033[A", TOP_KEY_UP },
	{ "\033OA", TOP_KEY_UP },
	{ "\033[B", TOP_KEY_DOWN },
	{ "\033OB", TOP_KEY_DOWN },
	{ "\033[C", TOP_KEY_NEXT_SORT },
	{ "\033OC", TOP_KEY_NEXT_SORT },
	{ "\033[D", TOP_KEY_LAST_SORT },
	{ "\033OD", TOP_KEY_LAST_SORT },
	{ "\033[5~", TOP_KEY_PAGE_UP },
	{ "\033[6~", TOP_KEY_PAGE_DOWN },
	{ "\033[H", TOP_KEY_HOME },
	{ "\033[F", TOP_KEY_END },
	{ "\033[1~", TOP_KEY_HOME },
	{ "\033[4~", TOP_KEY_END },
	{ "k", TOP_KEY_UP },
	{ "j", TOP_KEY_DOWN },
	{ " ", TOP_KEY_PAGE_DOWN },
	{ "s", TOP_KEY_NEXT_SORT },
};

/* Takes one key at the beginning of `text`; returns its length. */
static size_t take_key(struct top *top, const char *text)
{
	if (text[0] == 'q') {
		top->over = true;
		top->status_code = EXIT_CODE_OK; /* a job that has ended meanwhile is not a fault */
		return 1;
	}
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (str_starts(text, keys[i].bytes)) {
			top_view_key(&top->view, keys[i].key);
			return strlen(keys[i].bytes);
		}
	return 1;
}

static void take_keys(struct top *top)
{
	char text[256] = "";
	ssize_t n = read(STDIN_FILENO, text, sizeof(text) - 1);
	if (n <= 0)
		top->over = n == 0 || errno != EINTR;
	for (size_t at = 0; n > 0 && at < (size_t)n && !top->over;)
		at += take_key(top, text + at);
}

static void take_signal(struct top *top)
{
	struct signalfd_siginfo info;
	if (read(top->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH)
		return; /* the next picture has the new size */
	top->over = true;
	top->status_code = EXIT_CODE_SIGNAL_BASE + (int)info.ssi_signo;
}

/* Waits for something to happen, and takes it. */
static void wait_and_take(struct top *top)
{
	bool asking = top->child.out >= 0;
	int wait_ms = asking ? -1 : clock_left_ms(top->next_ns, clock_now_ns());
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				{ .fd = top->signal_fd, .events = POLLIN },
				{ .fd = top->child.out, .events = POLLIN },
				{ .fd = top->child.err, .events = POLLIN } };
	if (poll(fds, ARRAY_LEN(fds), wait_ms) < 0)
		return;
	if (fds[0].revents)
		take_keys(top);
	if (fds[1].revents)
		take_signal(top);
	if (fds[3].revents && !read_more(top->child.err, &top->complaints))
		fd_close(&top->child.err);
	if (fds[2].revents && !read_more(top->child.out, &top->answer))
		take_answer(top);
}

static void live(struct top *top)
{
	struct err err = ERR_INIT;
	while (!top->over) {
		if (top->child.out < 0 && clock_now_ns() >= top->next_ns &&
		    start_asking(top, &err) < 0)
			snprintf(top->view.notice, sizeof(top->view.notice), "%s", err.msg);
		wait_and_take(top);
		if (!top->over)
			draw(top);
	}
}

static int open_signals(int *ret_fd)
{
	sigset_t set;
	sigemptyset(&set);
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		sigaddset(&set, wanted[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	*ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd < 0 ? -errno : 0;
}

static int show_screen(struct top *top)
{
	struct termios before, raw;
	if (tcgetattr(STDIN_FILENO, &before) < 0 || open_signals(&top->signal_fd) < 0)
		return EXIT_CODE_SYSTEM;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VSUSP] = _POSIX_VDISABLE;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
	fd_write_all(STDOUT_FILENO, ENTER, strlen(ENTER));
	live(top);
	fd_write_all(STDOUT_FILENO, LEAVE, strlen(LEAVE));
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
	return top->status_code;
}

/* ---- the command ---- */

static void end_child(struct top *top)
{
	if (top->child.out < 0)
		return;
	kill(top->child.pid, SIGTERM);
	fd_close(&top->child.out);
	fd_close(&top->child.err);
	fd_close(&top->child.pidfd);
	child_wait(top->child.pid);
}

/* The first picture decides whether there is such a job. */
static int ask_once(struct top *top, const struct command *self)
{
	struct err err = ERR_INIT;
	if (start_asking(top, &err) < 0) {
		command_complain(self, "%s", err.msg);
		return EXIT_CODE_SYSTEM;
	}
	while (read_more(top->child.out, &top->answer))
		continue;
	while (read_more(top->child.err, &top->complaints))
		continue;
	take_answer(top);
	if (*top->view.notice && (top->status_code || !top->shown))
		command_complain(self, "%s", top->view.notice);
	return top->status_code;
}

static int show(struct top *top, const struct command *self, bool once)
{
	int status = ask_once(top, self);
	if (top->view.job_count == 0 && status != EXIT_CODE_OK)
		return status;
	if (!once)
		return show_screen(top);
	AUTO(buf_done) struct buf picture = BUF_INIT;
	top_view_draw(&top->view, (struct top_screen){ .width = command_width() }, &picture);
	fwrite(buf_data(&picture), 1, buf_len(&picture), stdout);
	return fflush(stdout) == 0 ? status : EXIT_CODE_SYSTEM;
}

static int top_main(const struct command *self, int argc, char **argv)
{
	struct top_options o = { .period_ns = PERIOD_DEFAULT_NS };
	const char *name;
	int status;
	if (!jobs_parse_any(self, &o, &o.narrow.place, argc, argv, &name, &status))
		return status;
	if (o.period_ns < PERIOD_MIN_NS)
		return command_usage_error(self, "--period: at least 100ms");
	struct top top = { .view = TOP_VIEW_INIT,
			   .child = PIPED_INIT,
			   .signal_fd = -1,
			   .period_ns = o.period_ns };
	top.view.sort = (enum top_sort)o.sort;
	make_command(&o, name, &top.status);
	status = show(&top, self, o.once || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO));
	end_child(&top);
	top_view_done(&top.view);
	strv_done(&top.status);
	buf_done(&top.answer);
	buf_done(&top.complaints);
	fd_close(&top.signal_fd);
	return status;
}

const struct command command_top = {
	.name = "top",
	.synopsis = "[--once] [--sort ORDER] [--host NAME] [--rank N,...] [JOB]",
	.summary = "watch the workers of running jobs, on all their hosts",
	.opts = top_opts,
	.mode = OPT_PERMUTE,
	.main = top_main,
};
