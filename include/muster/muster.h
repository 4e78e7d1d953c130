/* libmuster: start workers, and use timers, heartbeats and the store in a worker, from C and from
 * anything that calls C. The manual is muster(3); compile and link with `pkg-config --cflags --libs
 * muster`.
 *
 * Functions may be called from any thread. They never print and never exit; they return 0 or more,
 * or a negative errno, and muster_error() then explains it. A process that runs out of memory is
 * aborted. */
#ifndef MUSTER_MUSTER_H
#define MUSTER_MUSTER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* Why the last failed call of this thread failed; "" if none has. Valid until the next one
 * fails. */
MUSTER_API const char *muster_error(void);

/* -- Launching: a job of workers, seen to its end ----------------------------------------------- *
 *
 *     const char *command[] = { "train.py", "--lr", "0.1", NULL };
 *     struct muster_launch_config config = MUSTER_LAUNCH_CONFIG_INIT;
 *     config.command = command;
 *     config.nproc_per_node = 4;
 *     struct muster_result *result;
 *     if (muster_launch(&config, NULL, NULL, &result) == 0 && result->exit_code == 0)
 *             puts("done");
 *     muster_result_free(result);
 *
 * The job is run by the muster program as a child process in a process group of its own. Nothing is
 * set in the calling process: no signal handler or mask, no environment, no directory. When the
 * calling process ends, for whatever reason, the job is stopped.
 */
struct muster_launch_config {
	size_t size; /* of this struct in the caller's version; later versions have more members */
	const char *program; /* the muster program; NULL: $MUSTER_PROGRAM, else "muster" on PATH */
	/* what each worker runs, NULL at the end: a script, a program, and their arguments */
	const char *const *command;
	const char *const
		*options; /* more options of muster-run(1), NULL at the end; may be NULL */
	/* changes to the environment, NULL at the end: "NAME=value" sets, "NAME" unsets; may be
	 * NULL */
	const char *const *env;
	const char *cwd;    /* NULL: the caller's */
	int nproc_per_node; /* workers on this host; 0: one */
	int max_restarts;   /* of the group, after failures */
	int stdio[3];	    /* descriptors that become the program's 0, 1 and 2; -1: the caller's */
};

#define MUSTER_LAUNCH_CONFIG_INIT \
	{ \
		.size = sizeof(struct muster_launch_config), .stdio = { -1, -1, -1 } \
	}

/* One event of the job, as in muster-events(7). Valid during the call. */
struct muster_event {
	const char *name;	  /* "worker.exited" */
	const char *json;	  /* the whole event, without a newline */
	int64_t rank, local_rank; /* of its worker; -1: none */
	pid_t pid;		  /* of that worker; 0: none */
	int64_t round, restarts;
};

typedef void muster_event_fn(void *arg, const struct muster_event *event);

/* How a worker of this host ended, in the last round that started it. */
struct muster_worker_end {
	int64_t rank, local_rank;
	pid_t pid;	  /* 0: it could not be started */
	int exit_code;	  /* -1: none, because a signal ended it or its end is unknown */
	int signal;	  /* the signal that ended it; 0: none */
	int first;	  /* not 0: it was the first to fail on this host */
	int64_t ended_ms; /* wall-clock milliseconds since the epoch; 0: its end was not seen */
	/* the file for an exception, which exists if the worker recorded one; NULL: none */
	const char *error_file;
};

struct muster_result {
	/* of the program, as in muster-run(1); 128 + the signal that ended it; -1: unknown, because
	 * the caller ignores SIGCHLD or waited for all its children */
	int exit_code;
	int64_t restarts;
	size_t count; /* workers of this host, by rank */
	const struct muster_worker_end *workers;
};

/* Runs a job to its end. `on_event` may be NULL. The caller frees the result. An error means that
 * the program could not be started; the result says how the job ended. */
MUSTER_API int muster_launch(const struct muster_launch_config *config, muster_event_fn *on_event,
			     void *arg, struct muster_result **ret_result);
MUSTER_API void muster_result_free(struct muster_result *result); /* NULL: nothing */

/* The same in steps, for programs with their own event loop: when muster_job_fd() is readable, call
 * muster_job_step(), which never blocks, until it returns 1. A job belongs to one thread at a
 * time. */
struct muster_job;
MUSTER_API int muster_job_start(const struct muster_launch_config *config,
				struct muster_job **ret_job);
MUSTER_API int muster_job_fd(const struct muster_job *job);
MUSTER_API pid_t muster_job_pid(const struct muster_job *job); /* of the program; 0: it has ended */
MUSTER_API int muster_job_step(struct muster_job *job, muster_event_fn *on_event, void *arg);

/* Sends a signal to the program: SIGTERM and the like stop the job (muster-run(1)). -ESRCH after
 * its end. */
MUSTER_API int muster_job_signal(struct muster_job *job, int signal);

/* Returns the result, once, when muster_job_step() has returned 1; NULL before that. */
MUSTER_API struct muster_result *muster_job_take_result(struct muster_job *job);

/* Frees the job; if it still runs, kills it and waits for its end. NULL: does nothing. */
MUSTER_API void muster_job_free(struct muster_job *job);

/* -- The store: what all workers of a job share --------------------------------------------------
 * *
 *
 * A connection to the c10d store that torch's TCPStore uses too; both see the same keys. `seconds`
 * is the longest a call may take, negative for ever; -ETIMEDOUT past that. After -ETIMEDOUT of a
 * call that waits for keys the connection goes on; after any other error but -EMSGSIZE it can only
 * be closed. Keys are texts; values are bytes. Values handed out are malloc'ed, with a NUL behind
 * them that does not count; the caller frees them.
 *
 * Calls from several threads are made one after the other; a thread that waits long should have a
 * connection of its own. After fork(), the child opens its own. Looking up a host name (not an
 * address) makes a child process for as long as it takes.
 */
struct muster_store;

/* `address`: "host:port"; NULL: $MASTER_ADDR and $MASTER_PORT, as in a worker. Tries until the
 * store answers. */
MUSTER_API int muster_store_open(const char *address, double seconds,
				 struct muster_store **ret_store);
MUSTER_API void muster_store_close(struct muster_store *store); /* NULL: nothing */

MUSTER_API int muster_store_set(struct muster_store *store, const char *key, const void *value,
				size_t len, double seconds);
MUSTER_API int muster_store_append(struct muster_store *store, const char *key, const void *value,
				   size_t len, double seconds);

/* Waits for the key. */
MUSTER_API int muster_store_get(struct muster_store *store, const char *key, double seconds,
				void **ret_value, size_t *ret_len);

/* Adds to a number kept as decimal text, 0 if the key is not there. */
MUSTER_API int muster_store_add(struct muster_store *store, const char *key, int64_t delta,
				double seconds, int64_t *ret_sum);

/* Sets the key to `desired` if it is `expected`, or if it is not there and `expected` is empty.
 * Gives the value it has afterwards (`expected` if it is not there). */
MUSTER_API int muster_store_compare_set(struct muster_store *store, const char *key,
					const void *expected, size_t expected_len,
					const void *desired, size_t desired_len, double seconds,
					void **ret_value, size_t *ret_len);

/* 1: it existed; 0: it did not. */
MUSTER_API int muster_store_delete(struct muster_store *store, const char *key, double seconds);

/* 1: all exist; 0: not all do. */
MUSTER_API int muster_store_check(struct muster_store *store, const char *const *keys, size_t count,
				  double seconds);

/* Waits until all exist. */
MUSTER_API int muster_store_wait(struct muster_store *store, const char *const *keys, size_t count,
				 double seconds);

/* Waits until `world` processes have called it; a key serves once. */
MUSTER_API int muster_store_barrier(struct muster_store *store, const char *key, int64_t world,
				    double seconds);

/* The number of keys, those of torch and of barriers included. */
MUSTER_API int muster_store_num_keys(struct muster_store *store, double seconds,
				     int64_t *ret_count);

/* Calls `on_key` for every key, in any order. The key is valid during the call, which must not use
 * the store. */
typedef void muster_key_fn(void *arg, const char *key);
MUSTER_API int muster_store_keys(struct muster_store *store, double seconds, muster_key_fn *on_key,
				 void *arg);

/* Queues. pop does not wait: 1 and the oldest value, or 0 if the queue is empty. */
MUSTER_API int muster_store_push(struct muster_store *store, const char *key, const void *value,
				 size_t len, double seconds);
MUSTER_API int muster_store_pop(struct muster_store *store, const char *key, double seconds,
				void **ret_value, size_t *ret_len);
MUSTER_API int muster_store_queue_len(struct muster_store *store, const char *key, double seconds,
				      int64_t *ret_len);

/* -- Timers: "if I am not done with SCOPE in time, stop me" --------------------------------------
 * *
 *
 *     muster_timer_acquire("load", 60.0, SIGKILL);
 *     load();
 *     muster_timer_release("load");
 *
 * A timer that is not released in time gets the worker stopped with `signal` and the group
 * restarted as --max-restarts allows; with signal 0 the expiry is only reported. Acquiring a scope
 * again inside itself nests: each release ends the innermost one. Sending is one system call; there
 * is no answer to wait for. In a process that muster did not start these functions return -ENOTCONN
 * and do nothing, so that a program needs no special case. They may be called after fork().
 */
MUSTER_API int muster_timer_acquire(const char *scope, double seconds, int signal);
MUSTER_API int muster_timer_release(const char *scope);

/* Moves the deadline of the innermost timer of the scope, or arms one if there is none; useful in
 * loops. */
MUSTER_API int muster_timer_renew(const char *scope, double seconds, int signal);

/* The place in the source as a scope: muster_timer_acquire(MUSTER_HERE, 60.0, SIGKILL). */
#define MUSTER_HERE_TEXT(x) #x
#define MUSTER_HERE_LINE(x) MUSTER_HERE_TEXT(x)
#define MUSTER_HERE __FILE__ "#" MUSTER_HERE_LINE(__LINE__)

/* -- Heartbeat: "I am still getting somewhere", for --hang-timeout -------------------------------
 * *
 *
 * Adds one to a counter in memory shared with muster: no system call and no clock after the first
 * call, so it may stand in the innermost loop.
 */
MUSTER_API int muster_heartbeat(void);

#ifdef __cplusplus
}
#endif

#endif
