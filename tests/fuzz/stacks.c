/* Outputs of py-spy, eu-stack and gdb, and the answers of other hosts: any text is read or refused,
 * and what was read can be printed, written as JSON and read back as the same. */
#include <stdlib.h>
#include <string.h>

#include "proto/stacks/stack_in.h"
#include "proto/stacks/stack_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct stack_set *set)
{
	struct buf one = BUF_INIT, two = BUF_INIT, text = BUF_INIT;
	struct stack_set again = STACK_SET_INIT;
	struct json_out out = JSON_OUT(&one);
	stack_json_write(&out, set);
	if (stack_json_read(buf_str(&one), buf_len(&one), NULL, &again, NULL) < 0)
		abort();
	out = JSON_OUT(&two);
	stack_json_write(&out, &again);
	if (strcmp(buf_str(&one), buf_str(&two)) != 0)
		abort();
	stack_set_print(&again, &text);
	stack_set_folded(&again, &text);
	for (const char *at = buf_str(&text); *at; at++)
		if (*at == '\x1b')
			abort();
	stack_set_done(&again);
	buf_done(&one);
	buf_done(&two);
	buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static stack_reader_fn *const readers[] = { stack_read_pyspy, stack_read_eustack,
						    stack_read_gdb };
	struct stack_target target = { .pid = 12, .exe = "/opt/solver" };
	struct stack_process process = STACK_PROCESS_INIT;
	struct stack_set set = STACK_SET_INIT;
	if (size < 1)
		return 0;
	const char *text = (const char *)data + 1;
	size_t which = (size_t)data[0] % (ARRAY_LEN(readers) + 1);
	if (which < ARRAY_LEN(readers)) {
		readers[which](text, size - 1, &target, &process);
		stack_process_settle(&process);
		stack_set_text(&process.command, bytes_str("solver"));
		stack_set_add(&set, &process, &(struct stack_member){ .rank = 3 }, 1);
	} else if (stack_json_read(text, size - 1, "node1", &set, NULL) < 0) {
		stack_set_done(&set);
		return 0;
	}
	check(&set);
	stack_set_done(&set);
	return 0;
}
