#include "sys/signals.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/procfs.h"
#include "base/str.h"

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

static enum signal_meaning meaning_of(const struct signals *signals, int sig)
{
	if (sigismember(&signals->stop, sig) == 1)
		return SIGNAL_STOP;
	return sig == SIGTSTP ? SIGNAL_SUSPEND : SIGNAL_RELAY;
}

int signals_next(struct signals *signals, struct signal_taken *ret_taken)
{
	struct signalfd_siginfo info;
	if (read(signals->fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	*ret_taken = (struct signal_taken){
		.signal = (int)info.ssi_signo,
		.meaning = meaning_of(signals, (int)info.ssi_signo),
		.sender = (pid_t)info.ssi_pid,
	};
	return 1;
}

bool signals_sent_by(const struct signal_taken *taken, const char *program)
{
	struct proc_stat stat;
	if (!program || taken->sender == 0)
		return program != NULL;
	return procfs_stat(taken->sender, &stat) == 0 && str_eq(stat.comm, program);
}

uint64_t signals_suspend_self(void)
{
	uint64_t before_ns = clock_now_ns();
	kill(getpid(), SIGSTOP);
	return clock_now_ns() - before_ns;
}
