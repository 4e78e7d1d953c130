/* Runs a few commands side by side, each on a core of its own, and prints how long they took.
 *
 *     cc -o batch batch.c $(pkg-config --cflags --libs muster) && ./batch
 */
#include <stdio.h>
#include <string.h>

#include <muster/muster.h>

static void on_result(void *arg, const struct muster_batch_result *result)
{
	const struct muster_order *orders = arg;
	if (strcmp(result->reason, "ok") != 0)
		printf("%s: %s\n", orders[result->order].id, result->reason);
	else
		printf("%s: run %d took %.1f ms\n", orders[result->order].id, result->run,
		       (double)result->wall_ns / 1e6);
}

int main(void)
{
	struct muster_order orders[] = {
		{ .id = "short", .shell = "sleep 0.1", .runs = 2 },
		{ .id = "long", .shell = "sleep 0.2" },
		{ .id = "stuck", .shell = "sleep 60", .timeout = 0.3, .retries = 1 },
	};
	static const char *const options[] = { "--quiet", "--retry-delay=10ms", NULL };
	struct muster_batch_config config = MUSTER_BATCH_CONFIG_INIT;
	config.orders = orders;
	config.order_count = sizeof(orders) / sizeof(orders[0]);
	config.options = options;
	int exit_code;
	if (muster_batch_run(&config, on_result, orders, &exit_code) < 0) {
		fprintf(stderr, "%s\n", muster_error());
		return 1;
	}
	printf("ended with %d\n", exit_code);
	return 0;
}
