/* A program that runs batches through libmuster: orders on standard input, a line each, as
 * KEY=VALUE separated by tabs; the arguments are options of muster batch. "output=FILE" and
 * "resume" are for the configuration. It prints every result and the exit code, and passes SIGINT
 * on. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <muster/muster.h>

#define ORDERS_MAX 1000
#define LABELS_MAX 8

static struct muster_order orders[ORDERS_MAX];
static const char *labels[ORDERS_MAX][LABELS_MAX + 1];
static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

static void set(size_t i, const char *key, const char *value)
{
	struct muster_order *order = &orders[i];
	size_t label = 0;
	if (!strcmp(key, "shell"))
		order->shell = value;
	else if (!strcmp(key, "id"))
		order->id = value;
	else if (!strcmp(key, "source"))
		order->source = value;
	else if (!strcmp(key, "cores"))
		order->cores = atoi(value);
	else if (!strcmp(key, "retries"))
		order->retries = atoi(value);
	else if (!strcmp(key, "runs"))
		order->runs = atoi(value);
	else if (!strcmp(key, "timeout"))
		order->timeout = atof(value);
	else if (!strcmp(key, "label")) {
		while (labels[i][label])
			label++;
		labels[i][label] = value;
		order->labels = labels[i];
	}
}

static size_t read_orders(void)
{
	char *line = NULL;
	size_t count = 0, cap = 0;
	while (getline(&line, &cap, stdin) > 0 && count < ORDERS_MAX) {
		char *rest = strdup(line), *field;
		rest[strcspn(rest, "\n")] = '\0';
		while ((field = strsep(&rest, "\t"))) {
			char *equals = strchr(field, '=');
			*equals = '\0';
			set(count, field, equals + 1);
		}
		count++;
	}
	free(line);
	return count;
}

static void show(void *arg, const struct muster_batch_result *result)
{
	(void)arg;
	printf("order %d %s exit %d signal %d attempt %d run %d timed %d json %d\n",
	       (int)result->order, result->reason, result->exit_code, result->signal,
	       result->attempt, result->run, result->wall_ns > 0,
	       strstr(result->json, result->id) != NULL);
	printf("line %s\n", result->json);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct muster_batch_config config = MUSTER_BATCH_CONFIG_INIT;
	struct muster_batch *batch = NULL;
	for (; argc > 1 && argv[1][0] != '-'; argc--, argv++) {
		if (!strncmp(argv[1], "output=", 7))
			config.output = argv[1] + 7;
		config.resume = config.resume || !strcmp(argv[1], "resume");
	}
	config.orders = orders;
	config.order_count = read_orders();
	config.options = (const char *const *)argv + 1;
	signal(SIGINT, on_interrupt);
	int r = muster_batch_start(&config, &batch);
	if (r < 0) {
		printf("error %s: %s\n", strerrorname_np(-r), muster_error());
		return 1;
	}
	while ((r = muster_batch_step(batch, show, NULL)) == 0) {
		struct pollfd pfd = { .fd = muster_batch_fd(batch), .events = POLLIN };
		poll(&pfd, 1, -1);
		if (interrupted)
			muster_batch_signal(batch, SIGINT);
		interrupted = 0;
	}
	printf("exit %d\n", muster_batch_exit_code(batch));
	muster_batch_free(batch);
	return r < 0;
}
