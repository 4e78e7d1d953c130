/* What others see of heir and warden: a session, a name and a command line of their own. */
#ifndef SYS_START_PROCESS_TITLE_H
#define SYS_START_PROCESS_TITLE_H

/* Optional, first thing in main(): heir and warden write their names over the command line. Without
 * it they have to ask /proc where that is. */
void process_title_know_arguments(int argc, char **argv);

/* What heir and warden do first: a session of its own, a name, no signals, a subreaper. When the
 * parent dies, a stopped one continues. */
void process_title_take(const char *name);

#endif
