/* libmuster: what a worker of muster can say to it, from C and from anything that calls C.
 *
 * Link with -lmuster. All functions may be called from any thread, also after fork(). They never print
 * and never exit; they return 0, or a negative errno. In a process that muster did not start the
 * timer functions return -ENOTCONN and do nothing, so that a program needs no special case.
 */
#ifndef MUSTER_MUSTER_H
#define MUSTER_MUSTER_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MUSTER_API __attribute__((visibility("default")))
#else
#define MUSTER_API
#endif

/* The version of the library, such as "0.1.0". */
MUSTER_API const char *muster_version(void);

/* -- Timers: "if I am not done with SCOPE in time, stop me" -------------------------------------- *
 *
 *     muster_timer_acquire("load", 60.0, SIGKILL);
 *     load();
 *     muster_timer_release("load");
 *
 * A timer that is not released in time gets the worker stopped with `signal` and the group restarted
 * as --max-restarts allows; with signal 0 the expiry is only reported. Acquiring a scope again inside
 * itself nests: each release ends the innermost one. Sending is one system call; there is no answer to
 * wait for.
 */
MUSTER_API int muster_timer_acquire(const char *scope, double seconds, int signal);
MUSTER_API int muster_timer_release(const char *scope);

/* Moves the deadline of the innermost timer of the scope, or arms it if there is none: for loops. */
MUSTER_API int muster_timer_renew(const char *scope, double seconds, int signal);

/* The place in the source as a scope: muster_timer_acquire(MUSTER_HERE, 60.0, SIGKILL). */
#define MUSTER_HERE_TEXT(x) #x
#define MUSTER_HERE_LINE(x) MUSTER_HERE_TEXT(x)
#define MUSTER_HERE __FILE__ "#" MUSTER_HERE_LINE(__LINE__)

/* -- Heartbeat: "I am still getting somewhere", for --hang-timeout ------------------------------- *
 *
 * Adds one to a counter in memory shared with muster: no system call and no clock after the first
 * call, so it may stand in the innermost loop.
 */
MUSTER_API int muster_heartbeat(void);

#ifdef __cplusplus
}
#endif

#endif
