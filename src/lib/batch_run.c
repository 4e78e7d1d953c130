/* Batches: the muster program runs the orders as a child. It writes results into a file, and a byte
 * into a pipe whenever there is a new one; we read the file. */
#include <errno.h>
#include <fcntl.h>
#include <muster/muster.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "lib/last_error.h"
#include "lib/program.h"
#include "proto/json_out.h"
#include "proto/result.h"

/* The orders of a caller as an order list, and which of them a result is about. */

struct batch_orders {
	struct buf list;  /* muster-batch(5) */
	struct map by_id; /* "id\nvariant" -> its place + 1 as a pointer */
};

#define BATCH_ORDERS_INIT ((struct batch_orders){ .list = BUF_INIT, .by_id = MAP_INIT })

static void batch_orders_done(struct batch_orders *orders)
{
	buf_done(&orders->list);
	map_done(&orders->by_id);
}

static struct strv copy_of(const char *const *texts)
{
	struct strv copy = STRV_INIT;
	for (; texts && *texts; texts++)
		strv_add(&copy, *texts);
	return copy;
}

static void put_list(struct json_out *out, const char *key, const char *const *texts, bool as_map)
{
	AUTO(strv_done) struct strv list = copy_of(texts);
	if (list.count == 0)
		return;
	if (as_map)
		json_out_map(out, key, &list);
	else
		json_out_list(out, key, &list);
}

static void put_number(struct json_out *out, const char *key, int number)
{
	if (number)
		json_out_int(out, key, number);
}

/* All members of the object but its id. */
static void put_order(struct json_out *out, const struct muster_order *order)
{
	if (order->shell)
		json_out_text(out, "cmd", order->shell);
	else
		put_list(out, "cmd", order->argv, false);
	put_list(out, "labels", order->labels, true);
	put_list(out, "env", order->env, true);
	json_out_text_if(out, "source", order->source);
	json_out_text_if(out, "cwd", order->cwd);
	json_out_text_if(out, "stdin", order->stdin_path);
	json_out_text_if(out, "group", order->group);
	json_out_text_if(out, "variant", order->variant);
	if (order->timeout != 0)
		json_out_real(out, "timeout", order->timeout);
	put_number(out, "cores", order->cores);
	put_number(out, "retries", order->retries);
	put_number(out, "runs", order->runs);
}

static char *key_of(const char *id, const char *variant)
{
	return mem_printf("%s\n%s", id, variant ? variant : "");
}

/* The place of an order; -1: it is not one of them. */
static int64_t batch_orders_find(const struct batch_orders *orders, const char *id,
				 const char *variant)
{
	AUTO_FREE char *key = key_of(id, variant);
	return (int64_t)(uintptr_t)map_get(&orders->by_id, key, strlen(key)) - 1;
}

/* The id that was given, or one that stays the same as long as the order does; equal orders are
 * numbered. */
static char *id_of(const struct batch_orders *orders, const struct muster_order *order)
{
	static const uint64_t key[2] = { 0, 0 };
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_out out = JSON_OUT(&text);
	if (order->id)
		return mem_strdup(order->id);
	json_out_open(&out, NULL, '{');
	put_order(&out, order);
	json_out_close(&out, '}');
	unsigned long long hash = map_hash(key, buf_data(&text), buf_len(&text));
	char *id = mem_printf("%016llx", hash);
	for (int copy = 2; batch_orders_find(orders, id, order->variant) >= 0; copy++) {
		free(id);
		id = mem_printf("%016llx-%d", hash, copy);
	}
	return id;
}

static int add(struct batch_orders *orders, const struct muster_order *order, size_t place,
	       struct err *err)
{
	if (!order->shell == !(order->argv && order->argv[0]))
		return err_set(err, EINVAL, "order %zu has %s command", place,
			       order->shell ? "more than one" : "no");
	AUTO_FREE char *id = id_of(orders, order);
	AUTO_FREE char *key = key_of(id, order->variant);
	if (map_get(&orders->by_id, key, strlen(key)))
		return err_set(err, EEXIST, "order %zu has the id of another one: '%s'", place, id);
	map_put(&orders->by_id, key, strlen(key), (void *)(uintptr_t)(place + 1));
	struct json_out out = JSON_OUT(&orders->list);
	json_out_open(&out, NULL, '{');
	json_out_text(&out, "id", id);
	put_order(&out, order);
	json_out_close(&out, '}');
	buf_append_char(&orders->list, '\n');
	return 0;
}

/* `size`: of struct muster_order in the caller's version. */
static int batch_orders_make(struct batch_orders *orders, const struct muster_order *given,
			     size_t count, size_t size, struct err *err)
{
	int r = 0;
	for (size_t i = 0; i < count && r == 0; i++) {
		struct muster_order order = { 0 };
		memcpy(&order, (const char *)given + i * size, MIN(size, sizeof(order)));
		r = add(orders, &order, i, err);
	}
	return r;
}

#define READ_SIZE 65536

struct muster_batch {
	struct program program;
	struct batch_orders orders;
	char *output; /* the path of the result file, for us; NULL: it has none */
	int results;  /* the result file, open for reading; -1: not yet */
	bool heard;   /* the program has said that it writes to the file */
	struct buf input;
	int exit_code;
};

/* ---- starting ---- */

/* A file without a name that begins as the text. */
static int make_file(const char *name, const struct buf *text, struct err *err)
{
	AUTO(fd_close) int fd = memfd_create(name, MFD_CLOEXEC);
	int r = fd < 0 ? -errno : fd_write_all(fd, buf_data(text), buf_len(text));
	if (r < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, r < 0 ? -r : errno, "cannot make a file in memory: %m");
	return fd_take(&fd);
}

static void make_argv(const struct muster_batch *batch, const struct muster_batch_config *config,
		      struct strv *argv)
{
	strv_add(argv, "muster");
	strv_add(argv, "batch");
	strv_take(argv, mem_printf("--notify=%d", batch->program.its_news));
	strv_take(argv, mem_printf("--lifeline=%d", batch->program.its_lifeline));
	/* Another process's descriptor by its path: the program opens the file anew. */
	strv_take(argv, config->output
				? mem_printf("--output=%s", config->output)
				: mem_printf("--output=/proc/%d/fd/%d", getpid(), batch->results));
	strv_add(argv, "--allow-duplicates");
	if (config->resume)
		strv_add(argv, "--resume");
	for (const char *const *option = config->options; option && *option; option++)
		strv_add(argv, *option);
	strv_add(argv, "-");
}

static int start(struct muster_batch *batch, const struct muster_batch_config *config,
		 struct err *err)
{
	AUTO(strv_done) struct strv argv = STRV_INIT;
	AUTO(fd_close) int list = -1;
	int r = batch_orders_make(&batch->orders, config->orders, config->order_count,
				  config->order_size, err);
	if (r < 0 || (r = list = make_file("orders", &batch->orders.list, err)) < 0)
		return r;
	if (config->output && config->cwd && config->output[0] != '/')
		batch->output = mem_printf("%s/%s", config->cwd, config->output);
	else if (config->output)
		batch->output = mem_strdup(config->output);
	else if ((r = batch->results = make_file("results", &BUF_INIT, err)) < 0)
		return r;
	r = program_open(&batch->program, err);
	if (r < 0)
		return r;
	make_argv(batch, config, &argv);
	struct program_spec spec = { .program = config->program,
				     .argv = &argv,
				     .env = config->env,
				     .cwd = config->cwd,
				     .stdio = { list, config->stdout_fd, config->stderr_fd } };
	return program_start(&batch->program, &spec, err);
}

/* A caller compiled with an earlier version has shorter structs; their missing members are zero. */
static int read_config(const struct muster_batch_config *given, struct muster_batch_config *config,
		       struct err *err)
{
	if (given->size < offsetof(struct muster_batch_config, options) ||
	    given->order_size < offsetof(struct muster_order, source))
		return err_set(
			err, EINVAL,
			"the configuration has no size: begin with MUSTER_BATCH_CONFIG_INIT");
	memcpy(config, given, MIN(given->size, sizeof(*config)));
	if (!config->orders || config->order_count == 0)
		return err_set(err, EINVAL, "the configuration has no orders");
	if (config->resume && !config->output)
		return err_set(err, EINVAL, "the configuration has no result file to go on with");
	return 0;
}

int muster_batch_start(const struct muster_batch_config *given, struct muster_batch **ret_batch)
{
	struct err err = ERR_INIT;
	struct muster_batch_config config = MUSTER_BATCH_CONFIG_INIT;
	int r = read_config(given, &config, &err);
	if (r < 0)
		return last_error(r, &err);
	struct muster_batch *batch = NEW(struct muster_batch);
	*batch = (struct muster_batch){
		.program = PROGRAM_INIT, .orders = BATCH_ORDERS_INIT, .results = -1, .exit_code = -1
	};
	r = start(batch, &config, &err);
	if (r < 0) {
		muster_batch_free(batch);
		return last_error(r, &err);
	}
	*ret_batch = batch;
	return 0;
}

/* ---- following ---- */

int muster_batch_fd(const struct muster_batch *batch)
{
	return batch->program.news;
}

static int64_t value_of(const struct result *result, enum result_value value)
{
	return result->has[value] ? result->value[value] : -1;
}

static void take_line(const struct muster_batch *batch, const char *line, size_t len,
		      muster_batch_fn *on_result, void *arg)
{
	AUTO(result_done) struct result result = RESULT_INIT;
	if (!on_result || result_read(line, len, &result, NULL) <= 0)
		return;
	AUTO_FREE char *json = mem_strndup(line, len);
	const struct exit_status *status = &result.status;
	const struct muster_batch_result told = {
		.order = result.reason == REASON_CANARY
				 ? -1
				 : batch_orders_find(&batch->orders, result.id, result.variant),
		.id = result.id,
		.json = json,
		.reason = reason_name(result.reason),
		.exit_code = status->kind == EXIT_CODE ? status->value : -1,
		.signal = status->kind == EXIT_SIGNAL ? status->value : 0,
		.attempt = result.attempt,
		.run = result.run,
		.warmup = result.warmup,
		.wall_ns = value_of(&result, RESULT_WALL_NS),
		.user_ns = value_of(&result, RESULT_USER_NS),
		.sys_ns = value_of(&result, RESULT_SYS_NS),
		.maxrss_kb = value_of(&result, RESULT_MAXRSS_KB),
		.instructions = value_of(&result, RESULT_INSTRUCTIONS),
		.stdout_path = result.out.path,
		.stderr_path = result.err_out.path,
	};
	on_result(arg, &told);
}

static void take_lines(struct muster_batch *batch, muster_batch_fn *on_result, void *arg)
{
	const unsigned char *data, *end;
	while ((data = buf_data(&batch->input)) &&
	       (end = memchr(data, '\n', buf_len(&batch->input)))) {
		size_t len = (size_t)(end - data);
		take_line(batch, (const char *)data, len, on_result, arg);
		buf_consume(&batch->input, len + 1);
	}
}

/* Reads what is new in the result file. */
static int take_results(struct muster_batch *batch, muster_batch_fn *on_result, void *arg)
{
	if (batch->results < 0)
		batch->results = open(batch->output, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (batch->results < 0)
		return -errno;
	for (;;) {
		ssize_t n = fd_read_some(batch->results, READ_SIZE, &batch->input);
		if (n <= 0)
			return (int)n;
		take_lines(batch, on_result, arg);
	}
}

int muster_batch_step(struct muster_batch *batch, muster_batch_fn *on_result, void *arg)
{
	char news[256];
	ssize_t n = 1;
	while (!batch->program.ended && n > 0) {
		do
			n = read(batch->program.news, news, sizeof(news));
		while (n < 0 && errno == EINTR);
		batch->heard = batch->heard || n > 0;
	}
	if (batch->program.ended)
		return 1;
	int failed = n < 0 && errno != EAGAIN ? -errno : 0;
	int r = batch->heard ? take_results(batch, on_result, arg) : 0;
	if (failed < 0 || r < 0)
		return last_error(MIN(failed, r), NULL);
	if (n < 0)
		return 0;
	batch->exit_code = program_wait(&batch->program);
	return 1;
}

int muster_batch_signal(struct muster_batch *batch, int signal)
{
	return last_error(program_signal(&batch->program, signal), NULL);
}

int muster_batch_exit_code(const struct muster_batch *batch)
{
	return batch->exit_code;
}

void muster_batch_free(struct muster_batch *batch)
{
	if (!batch)
		return;
	program_done(&batch->program);
	batch_orders_done(&batch->orders);
	fd_close(&batch->results);
	buf_done(&batch->input);
	free(batch->output);
	free(batch);
}

int muster_batch_run(const struct muster_batch_config *config, muster_batch_fn *on_result,
		     void *arg, int *ret_exit_code)
{
	struct muster_batch *batch = NULL;
	int r = muster_batch_start(config, &batch);
	while (r == 0) {
		struct pollfd pfd = { .fd = muster_batch_fd(batch), .events = POLLIN };
		poll(&pfd, 1, -1);
		r = muster_batch_step(batch, on_result, arg);
	}
	if (r > 0 && ret_exit_code)
		*ret_exit_code = muster_batch_exit_code(batch);
	muster_batch_free(batch);
	return MIN(r, 0);
}
