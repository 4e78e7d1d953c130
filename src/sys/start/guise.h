/* What others see of heir and warden: a session, a name and a command line of their own. */
#ifndef SYS_START_GUISE_H
#define SYS_START_GUISE_H

/* Optional, first thing in main(): heir and warden write their names over the command line. Without
 * it they have to ask /proc where that is. */
void guise_know_arguments(int argc, char **argv);

/* What heir and warden do first: a session of its own, a name, no signals, a subreaper. When the
 * parent dies, a stopped one continues. */
void guise_take(const char *name);

#endif
