/* libmuster: start workers, run batches of commands, and use timers, heartbeats and the store in a
 * worker, from C and from anything that calls C. The manual is muster(3); compile and link with
 * `pkg-config --cflags --libs muster`.
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

/* -- Batches: long lists of commands, each on cores of its own ---------------------------------- *
 *
 *     struct muster_order orders[] = { { .shell = "./bench 1" }, { .shell = "./bench 2", .cores = 2
 * } }; struct muster_batch_config config = MUSTER_BATCH_CONFIG_INIT; config.orders = orders;
 *     config.order_count = 2;
 *     int exit_code;
 *     if (muster_batch_run(&config, on_result, NULL, &exit_code) == 0 && exit_code == 0)
 *             puts("done");
 *
 * muster batch runs them as a child process, as muster_launch() runs a job; when the calling
 * process ends, the batch stops. muster-batch(1) and muster-batch(5) say what the members mean.
 */
struct muster_order {
	const char *id;		      /* NULL: one is made from all that follows */
	const char *shell;	      /* a line for the shell; or */
	const char *const *argv;      /* words to execute as they are, NULL at the end */
	const char *source;	      /* sets up the environment first: ". env.sh"; may be NULL */
	const char *const *labels;    /* "NAME=value", NULL at the end; may be NULL */
	const char *const *env;	      /* "NAME=value" sets, "NAME" unsets; may be NULL */
	const char *cwd, *stdin_path; /* NULL: the caller's directory, /dev/null */
	const char *group, *variant;  /* may be NULL */
	double timeout;		      /* seconds; 0: as the options say */
	int cores, retries, runs;     /* 0: as the options say */
};

struct muster_batch_config {
	/* of this struct and of struct muster_order in the caller's version; later versions have
	 * more members */
	size_t size, order_size;
	const char *program; /* the muster program; NULL: $MUSTER_PROGRAM, else "muster" on PATH */
	const struct muster_order *orders;
	size_t order_count;
	const char *const
		*options;	/* more options of muster-batch(1), NULL at the end; may be NULL */
	const char *const *env; /* changes to the environment of all, as in an order; may be NULL */
	const char *cwd;	/* NULL: the caller's */
	const char *output;	/* the result file; NULL: none is kept */
	int resume;		/* not 0: go on with `output`; its results come first */
	/* descriptors that become standard output and error of the program; -1: the caller's */
	int stdout_fd, stderr_fd;
};

#define MUSTER_BATCH_CONFIG_INIT \
	{ \
		.size = sizeof(struct muster_batch_config), \
		.order_size = sizeof(struct muster_order), .stdout_fd = -1, .stderr_fd = -1 \
	}

/* One attempt, as in muster-batch(5). Valid during the call. */
struct muster_batch_result {
	int64_t order;	    /* its place in `orders`; -1: a canary, or an order of another list */
	const char *id;	    /* of the order */
	const char *json;   /* all there is to know, without a newline */
	const char *reason; /* how it ended: "ok", "exit", "signal", "timeout", … */
	int exit_code;	    /* -1: none */
	int signal;	    /* that ended it; 0: none */
	int attempt, run;   /* from 1 and from 0 */
	int warmup;	    /* not 0: the run does not count */
	/* -1: not measured */
	int64_t wall_ns, user_ns, sys_ns, maxrss_kb, instructions;
	/* the files with its output, with --results=DIR; else NULL */
	const char *stdout_path, *stderr_path;
};

typedef void muster_batch_fn(void *arg, const struct muster_batch_result *result);

/* Runs a batch to its end and calls `on_result`, which may be NULL, for every attempt when it is
 * over. An error means that the program could not be started; the exit code, as in muster-batch(1),
 * says how the batch ended. `ret_exit_code` may be NULL. */
MUSTER_API int muster_batch_run(const struct muster_batch_config *config,
				muster_batch_fn *on_result, void *arg, int *ret_exit_code);

/* The same in steps, as with muster_job_start(). */
struct muster_batch;
MUSTER_API int muster_batch_start(const struct muster_batch_config *config,
				  struct muster_batch **ret_batch);
MUSTER_API int muster_batch_fd(const struct muster_batch *batch);
MUSTER_API int muster_batch_step(struct muster_batch *batch, muster_batch_fn *on_result, void *arg);

/* SIGINT and SIGTERM stop the batch: its orders get SIGINT, and SIGKILL after 10 seconds or a
 * second signal. -ESRCH after its end. */
MUSTER_API int muster_batch_signal(struct muster_batch *batch, int signal);

/* When muster_batch_step() has returned 1: the exit code; -1 before that, or if it is unknown. */
MUSTER_API int muster_batch_exit_code(const struct muster_batch *batch);

/* Frees the batch; if it still runs, kills it and waits for its end. NULL: does nothing. */
MUSTER_API void muster_batch_free(struct muster_batch *batch);

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

/* -- Steps: "this is how far I have got", for muster status, metrics and reports ------------------
 * *
 *
 *     muster_total_steps(10000);
 *     for (uint64_t step = 1; step <= 10000; step++) {
 *         train();
 *         muster_step(step);
 *     }
 *
 * Called when step number `step` is done. Two stores and a reading of the clock, no system call
 * after the first call. One thread at a time. Like all functions here they return -ENOTCONN in a
 * process that muster did not start.
 */
MUSTER_API int muster_step(uint64_t step);

/* Steps in all, for the time that is left; 0: unknown. */
MUSTER_API int muster_total_steps(uint64_t total);

/* The state after step number `step` is on disk: a restart can begin there. */
MUSTER_API int muster_saved(uint64_t step);

/* What the worker is doing from now on, such as "data" or "backward"; NULL: nothing with a name. A
 * worker may have 16 names of up to 47 bytes: -ENOSPC, -ENAMETOOLONG. */
MUSTER_API int muster_section(const char *name);

/* Leaving together: after SIGTERM or SIGUSR1 to `muster run` on any host, all workers of
 * the job get 1 after the same step, and 0 after all others. To be asked after every step, from the
 * first one on:
 *
 *     if (muster_stop_after(step)) {
 *             save();
 *             exit(0);
 *     }
 *
 * One read of memory while there is nothing to do; when there is, a call may wait for the other
 * workers' hosts for some milliseconds. 0 in a process that muster did not start. */
MUSTER_API int muster_stop_after(uint64_t step);

/* The same for saving: 1 after the step after which all workers save, to leave then or to go on. To
 * be asked before muster_stop_after(). */
MUSTER_API int muster_save_after(uint64_t step);

/* The page of shared memory that the functions above write (muster-page(7)), for bindings to other
 * languages. It stays mapped for the life of the process. */
MUSTER_API int muster_page(void **ret_page);

/* -- Kept state: memory that the next worker of this rank gets after a restart -------------------
 * *
 *
 *     struct muster_kept *kept;
 *     uint64_t step = 0;
 *     muster_keep("model", size, &kept);
 *     const void *state = muster_kept_state(kept, &step);
 *     if (state)
 *         load(state);
 *     while (step < steps) {
 *         train(++step);
 *         save(muster_kept_begin(kept));
 *         muster_kept_commit(kept, step);
 *     }
 *
 * muster holds it, two states of `size` bytes, and gives it to the next worker of this rank. After
 * a restart every rank gets the newest step that all ranks have committed; none if there is no such
 * step, because a host was lost or ranks have changed. Nothing of it survives the job. Between two
 * commits the ranks must have met (any collective will do): then none is more than one ahead.
 *
 * In a process that muster did not start it is ordinary memory. -EEXIST: there is a state of
 * another size; -ENOSPC: a worker has 16 names; -EDQUOT: more than --keep-limit. One thread at a
 * time. */
struct muster_kept;
MUSTER_API int muster_keep(const char *name, size_t size, struct muster_kept **ret_kept);
MUSTER_API void muster_kept_free(struct muster_kept *kept); /* it stays kept; NULL: nothing */

/* The newest state that is committed; NULL: none. `ret_step` may be NULL. */
MUSTER_API const void *muster_kept_state(const struct muster_kept *kept, uint64_t *ret_step);

/* The place for the next state. What was there no longer counts; the newest state stays. */
MUSTER_API void *muster_kept_begin(struct muster_kept *kept);

/* That place has the state after `step`. -EINVAL: a later step is committed, or nothing was
 * begun. */
MUSTER_API int muster_kept_commit(struct muster_kept *kept, uint64_t step);

#ifdef __cplusplus
}
#endif

#endif
