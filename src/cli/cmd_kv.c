/* muster kv: the workers' store from a shell. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"
#include "core/worker/exit_code.h"
#include "net/store_client.h"

#define TELL_AFTER_NS NS_PER_S
#define KV_DEFAULT_TIMEOUT_NS (300 * NS_PER_S)

struct kv_options {
	const char *store;
	const char *prefix;
	uint64_t timeout_ns;
	bool no_wait;
	bool raw;
};

static const struct opt kv_opts[] = {
	OPT_STR("store", NULL, struct kv_options, store, "HOST:PORT",
		"the store (default: $MASTER_ADDR and $MASTER_PORT, as workers have them)"),
	OPT_DURATION("timeout", NULL, struct kv_options, timeout_ns, "TIME",
		     "longest time for everything, connecting included (default 300s)"),
	OPT_STR("prefix", NULL, struct kv_options, prefix, "P",
		"use the keys P/KEY, as PyTorch's PrefixStore does"),
	OPT_FLAG("no-wait", NULL, struct kv_options, no_wait,
		 "get, pop: fail with 1 if the key is not there, do not wait for it"),
	OPT_FLAG("raw", NULL, struct kv_options, raw,
		 "get, pop, cas: print no newline after a value"),
	OPT_END,
};

/* One invocation. */
struct kv {
	const struct kv_options *options;
	struct store_client *client;
	uint64_t deadline_ns;
	char **args;
	int count;
	struct strv keys; /* with the prefix; owned */
	struct err err;
};

/* Returns the exit code: 0 done, 1 the answer is "no". Below 0: kv->err says what went wrong. */
typedef int kv_fn(struct kv *kv);

static struct bytes key_of(struct kv *kv, const char *name)
{
	if (!kv->options->prefix)
		return bytes_str(name);
	strv_take(&kv->keys, mem_printf("%s/%s", kv->options->prefix, name));
	return bytes_str(kv->keys.items[kv->keys.count - 1]);
}

static struct bytes *keys_of(struct kv *kv, int step)
{
	struct bytes *keys = NEW_ARRAY(struct bytes, (size_t)kv->count);
	for (int i = 0; i < kv->count; i += step)
		keys[i / step] = key_of(kv, kv->args[i]);
	return keys;
}

static void print_value(const struct kv *kv, struct bytes value)
{
	fwrite(value.data ? value.data : (const unsigned char *)"", 1, value.len, stdout);
	if (!kv->options->raw)
		putchar('\n');
}

static void print_item(void *arg, struct bytes value)
{
	print_value(arg, value);
}

/* A value from the command line, or all of the standard input for "-". */
static int value_of(struct kv *kv, const char *text, struct buf *input, struct bytes *ret_value)
{
	*ret_value = bytes_str(text);
	if (!str_eq(text, "-"))
		return 0;
	int r = fd_read_all(STDIN_FILENO, C10D_VALUE_MAX, input, &kv->err);
	if (r < 0)
		return err_wrap(&kv->err, "the value on the standard input");
	*ret_value = bytes_of(buf_data(input), buf_len(input));
	return 0;
}

static int all_there(struct kv *kv, const struct bytes *keys)
{
	bool present = false;
	int r = store_client_check(kv->client, keys, (size_t)kv->count, kv->deadline_ns, &present,
				   &kv->err);
	if (r < 0)
		return r;
	return present ? EXIT_CODE_OK : EXIT_CODE_FAILED;
}

static int kv_get(struct kv *kv)
{
	AUTO_FREE struct bytes *keys = keys_of(kv, 1);
	if (kv->options->no_wait) {
		int r = all_there(kv, keys);
		if (r != EXIT_CODE_OK)
			return r;
	}
	if (kv->count > 1)
		return store_client_multi_get(kv->client, keys, (size_t)kv->count, kv->deadline_ns,
					      print_item, kv, &kv->err);
	AUTO(buf_done) struct buf value = BUF_INIT;
	int r = store_client_get(kv->client, keys[0], kv->deadline_ns, &value, &kv->err);
	if (r == 0)
		print_value(kv, bytes_of(buf_data(&value), buf_len(&value)));
	return r;
}

static int kv_set_many(struct kv *kv)
{
	AUTO_FREE struct bytes *keys = keys_of(kv, 2);
	AUTO_FREE struct bytes *values = NEW_ARRAY(struct bytes, (size_t)kv->count);
	for (int i = 1; i < kv->count; i += 2)
		values[i / 2] = bytes_str(kv->args[i]);
	return store_client_multi_set(kv->client, keys, values, (size_t)kv->count / 2,
				      kv->deadline_ns, &kv->err);
}

typedef int write_fn(struct store_client *client, struct bytes key, struct bytes value,
		     uint64_t deadline_ns, struct err *err);

static int write_one(struct kv *kv, write_fn *write)
{
	AUTO(buf_done) struct buf input = BUF_INIT;
	struct bytes value;
	int r = value_of(kv, kv->args[1], &input, &value);
	return r < 0 ? r
		     : write(kv->client, key_of(kv, kv->args[0]), value, kv->deadline_ns, &kv->err);
}

static int kv_set(struct kv *kv)
{
	if (kv->count % 2 != 0)
		return err_set(&kv->err, EINVAL, "set: '%s' has no value", kv->args[kv->count - 1]);
	return kv->count > 2 ? kv_set_many(kv) : write_one(kv, store_client_set);
}

static int kv_append(struct kv *kv)
{
	return write_one(kv, store_client_append);
}

static int kv_push(struct kv *kv)
{
	return write_one(kv, store_client_queue_push);
}

static int kv_pop(struct kv *kv)
{
	struct bytes key = key_of(kv, kv->args[0]);
	if (!kv->options->no_wait) {
		int r = store_client_wait(kv->client, &key, 1, kv->deadline_ns, &kv->err);
		if (r < 0)
			return r;
	}
	AUTO(buf_done) struct buf value = BUF_INIT;
	int64_t length;
	int r = store_client_queue_pop(kv->client, key, kv->deadline_ns, &length, &value, &kv->err);
	if (r < 0)
		return r;
	if (length <= 0)
		return EXIT_CODE_FAILED;
	print_value(kv, bytes_of(buf_data(&value), buf_len(&value)));
	return EXIT_CODE_OK;
}

static int print_number(int r, int64_t number)
{
	if (r == 0)
		printf("%lld\n", (long long)number);
	return r;
}

static int kv_queue_len(struct kv *kv)
{
	int64_t length = 0;
	int r = store_client_queue_len(kv->client, key_of(kv, kv->args[0]), kv->deadline_ns,
				       &length, &kv->err);
	return print_number(r, length);
}

static int kv_add(struct kv *kv)
{
	int64_t delta = 1, sum = 0;
	if (kv->count > 1 && str_to_i64(kv->args[1], &delta) < 0)
		return err_set(&kv->err, EINVAL, "add: '%s' is not a number", kv->args[1]);
	int r = store_client_add(kv->client, key_of(kv, kv->args[0]), delta, kv->deadline_ns, &sum,
				 &kv->err);
	return print_number(r, sum);
}

static int kv_cas(struct kv *kv)
{
	AUTO(buf_done) struct buf value = BUF_INIT;
	struct bytes desired = bytes_str(kv->args[2]);
	int r = store_client_compare_set(kv->client, key_of(kv, kv->args[0]),
					 bytes_str(kv->args[1]), desired, kv->deadline_ns, &value,
					 &kv->err);
	if (r < 0)
		return r;
	struct bytes now = bytes_of(buf_data(&value), buf_len(&value));
	print_value(kv, now);
	return bytes_eq(now, desired) ? EXIT_CODE_OK : EXIT_CODE_FAILED;
}

static int kv_wait(struct kv *kv)
{
	AUTO_FREE struct bytes *keys = keys_of(kv, 1);
	return store_client_wait(kv->client, keys, (size_t)kv->count, kv->deadline_ns, &kv->err);
}

static int kv_check(struct kv *kv)
{
	AUTO_FREE struct bytes *keys = keys_of(kv, 1);
	return all_there(kv, keys);
}

static int kv_delete(struct kv *kv)
{
	bool existed = false;
	int r = store_client_delete(kv->client, key_of(kv, kv->args[0]), kv->deadline_ns, &existed,
				    &kv->err);
	if (r < 0)
		return r;
	return existed ? EXIT_CODE_OK : EXIT_CODE_FAILED;
}

static void print_key(void *arg, struct bytes key)
{
	const struct kv *kv = arg;
	const char *prefix = kv->options->prefix;
	if (prefix) {
		size_t len = strlen(prefix);
		if (key.len <= len || memcmp(key.data, prefix, len) != 0 || key.data[len] != '/')
			return;
		key = bytes_of(key.data + len + 1, key.len - len - 1);
	}
	printf("%.*s\n", (int)key.len, (const char *)key.data);
}

static int kv_keys(struct kv *kv)
{
	return store_client_list_keys(kv->client, kv->deadline_ns, print_key, kv, &kv->err);
}

static int kv_len(struct kv *kv)
{
	int64_t count = 0;
	int r = store_client_num_keys(kv->client, kv->deadline_ns, &count, &kv->err);
	return print_number(r, count);
}

static int kv_barrier(struct kv *kv)
{
	const char *text = kv->count > 1 ? kv->args[1] : getenv("WORLD_SIZE");
	int64_t world;
	if (!text)
		return err_set(&kv->err, EINVAL,
			       "barrier: how many take part? Give N or set WORLD_SIZE");
	if (str_to_i64(text, &world) < 0 || world < 1)
		return err_set(&kv->err, EINVAL, "barrier: '%s' is not a number of participants",
			       text);
	return store_client_barrier(kv->client, key_of(kv, kv->args[0]), world, kv->deadline_ns,
				    &kv->err);
}

static int kv_ping(struct kv *kv)
{
	return store_client_ping(kv->client, kv->deadline_ns, &kv->err);
}

static const struct {
	const char *name;
	int min, max; /* arguments; max -1: any number */
	kv_fn *run;
} operations[] = {
	{ "get", 1, -1, kv_get },	{ "set", 2, -1, kv_set },
	{ "add", 1, 2, kv_add },	{ "wait", 1, -1, kv_wait },
	{ "check", 1, -1, kv_check },	{ "append", 2, 2, kv_append },
	{ "delete", 1, 1, kv_delete },	{ "cas", 3, 3, kv_cas },
	{ "keys", 0, 0, kv_keys },	{ "len", 0, 0, kv_len },
	{ "push", 2, 2, kv_push },	{ "pop", 1, 1, kv_pop },
	{ "qlen", 1, 1, kv_queue_len }, { "barrier", 1, 2, kv_barrier },
	{ "ping", 0, 0, kv_ping },
};

static const char *operation_name(size_t i)
{
	return i < ARRAY_LEN(operations) ? operations[i].name : NULL;
}

static int find_operation(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(operations); i++)
		if (str_eq(operations[i].name, name))
			return (int)i;
	return -1;
}

static int exit_code_of(int r)
{
	switch (r) {
	case -ETIMEDOUT:
		return EXIT_CODE_TIMEOUT;
	case -EINVAL:
		return EXIT_CODE_USAGE;
	default:
		return r < 0 ? EXIT_CODE_SYSTEM : r;
	}
}

/* A store may be started after its clients, so they wait; the user is told what for. */
static int connect_store(struct kv *kv, const struct addr_name *name)
{
	uint64_t soon_ns = MIN(kv->deadline_ns, ns_add(clock_now_ns(), TELL_AFTER_NS));
	int r = store_client_open(name, soon_ns, &kv->client, &kv->err);
	if (r == 0 || soon_ns == kv->deadline_ns)
		return r;
	char left[CLOCK_HUMAN_MAX];
	clock_human(kv->deadline_ns - soon_ns, left);
	fprintf(stderr, "muster kv: %s; trying for another %s\n", kv->err.msg, left);
	return store_client_open(name, kv->deadline_ns, &kv->client, &kv->err);
}

static int run(struct kv *kv, kv_fn *operation)
{
	struct addr_name name;
	int r = store_client_name(kv->options->store, &name, &kv->err);
	if (r == 0)
		r = connect_store(kv, &name);
	if (r == 0)
		r = operation(kv);
	if (r >= 0 && fflush(stdout) != 0)
		r = err_set(&kv->err, EIO, "cannot write to the standard output");
	return r;
}

static int refuse_operation(const struct command *self, const char *name)
{
	AUTO(buf_done) struct buf names = BUF_INIT;
	for (size_t i = 0; i < ARRAY_LEN(operations); i++)
		buf_printf(&names, "%s%s", i ? ", " : "", operations[i].name);
	if (!name)
		return command_usage_error(self, "no operation given: %s", buf_str(&names));
	return command_usage_error(self, "unknown operation '%s'; there are %s", name,
				   buf_str(&names));
}

static int kv_main(const struct command *self, int argc, char **argv)
{
	struct kv_options o = { .timeout_ns = KV_DEFAULT_TIMEOUT_NS };
	int first, status;
	if (!command_parse(self, &o, argc, argv, NULL, &first, &status))
		return status;
	int found = first < argc ? find_operation(argv[first]) : -1;
	if (found < 0)
		return refuse_operation(self, first < argc ? argv[first] : NULL);
	int count = argc - first - 1;
	if (count < operations[found].min ||
	    (operations[found].max >= 0 && count > operations[found].max))
		return command_usage_error(self, "wrong number of arguments for '%s'", argv[first]);

	struct kv kv = { .options = &o,
			 .deadline_ns = ns_add(clock_now_ns(), o.timeout_ns),
			 .args = argv + first + 1,
			 .count = count,
			 .keys = STRV_INIT,
			 .err = ERR_INIT };
	int r = run(&kv, operations[found].run);
	store_client_close(kv.client);
	strv_done(&kv.keys);
	if (r < 0)
		log_error("kv %s: %s", argv[first], kv.err.msg);
	return exit_code_of(r);
}

const struct command command_kv = {
	.name = "kv",
	.synopsis = "[OPTIONS] OPERATION [ARGUMENTS]",
	.summary = "use the workers' store from a shell",
	.footer = "Operations:\n"
		  "  get KEY...            print the values, waiting for the keys\n"
		  "  set KEY VALUE...      set keys; the value - is read from the standard input\n"
		  "  add KEY [N]           add N (default 1) to a number and print the sum\n"
		  "  wait KEY...           wait until all keys are there\n"
		  "  check KEY...          exit 0 if all keys are there, 1 if not\n"
		  "  append KEY VALUE      append to the value\n"
		  "  delete KEY            exit 0 if it was there, 1 if not\n"
		  "  cas KEY OLD NEW       set to NEW if it is OLD; print it; exit 1 if not NEW\n"
		  "  keys, len             list or count the keys, PyTorch's own included\n"
		  "  push KEY VALUE, pop KEY, qlen KEY   queues\n"
		  "  barrier KEY [N]       wait for N processes (default $WORLD_SIZE); once a key\n"
		  "  ping                  see whether the store answers\n",
	.opts = kv_opts,
	.mode = OPT_STOP_AT_POSITIONAL,
	.word = operation_name,
	.main = kv_main,
};
