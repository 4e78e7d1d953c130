#include "run/signals.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

static bool is_ignored(int sig)
{
	struct sigaction action;
	return sigaction(sig, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int signals_open(const sigset_t *stop, struct signals *ret_signals, struct err *err)
{
	struct signals signals = { .fd = -1, .stop = *stop };
	if (is_ignored(SIGHUP))
		sigdelset(&signals.stop, SIGHUP);

	sigset_t mask = signals.stop;
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGUSR2);
	sigaddset(&mask, SIGTSTP);
	if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
		return err_set(err, errno, "block signals: %m");

	/* A blocked signal stays pending only if its disposition is not "ignore". */
	for (int sig = 1; sig < NSIG; sig++)
		if (sigismember(&mask, sig) == 1)
			signal(sig, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);

	signals.fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals.fd < 0)
		return err_set(err, errno, "signalfd: %m");
	*ret_signals = signals;
	return 0;
}

void signals_release(void)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void signals_close(struct signals *signals)
{
	fd_close(&signals->fd);
}

int signals_next(struct signals *signals, int *ret_signal, enum signal_meaning *ret_meaning)
{
	struct signalfd_siginfo info;
	if (read(signals->fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	*ret_signal = (int)info.ssi_signo;
	if (sigismember(&signals->stop, *ret_signal) == 1)
		*ret_meaning = SIGNAL_STOP;
	else if (*ret_signal == SIGTSTP)
		*ret_meaning = SIGNAL_SUSPEND;
	else
		*ret_meaning = SIGNAL_RELAY;
	return 1;
}

uint64_t signals_suspend_self(void)
{
	uint64_t before_ns = clock_now_ns();
	kill(getpid(), SIGSTOP);
	return clock_now_ns() - before_ns;
}
