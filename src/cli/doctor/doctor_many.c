#include "cli/doctor/doctor_many.h"

#include <string.h>

#include "base/mem.h"
#include "cli/hosts.h"
#include "core/worker/exit_code.h"
#include "proto/checks/check_json.h"

/* The last line that says something: ssh's reason, or the shell's. */
static char *last_line(const struct buf *errors)
{
	const char *text = (const char *)buf_data(errors);
	size_t end = buf_len(errors), begin;
	while (end && strchr(" \t\r\n", text[end - 1]))
		end--;
	for (begin = end; begin && text[begin - 1] != '\n';)
		begin--;
	return mem_strndup(text + begin, end - begin);
}

void doctor_add(struct across *across, const char *name, const struct buf *output,
		const struct buf *errors, const char *why, const char *remedy)
{
	struct check_list results = CHECK_LIST_INIT;
	const char *text = (const char *)buf_data(output);
	if (buf_len(output) && check_json_read_all(text, buf_len(output), &results, NULL) == 0) {
		across_add(across, name, &results);
		return;
	}
	AUTO_FREE char *said = buf_len(errors) ? last_line(errors) : mem_strdup("");
	across_add_lost(across, name, remedy, *said ? said : why);
}

int doctor_show(const struct across *across, bool json)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (json)
		check_json_write_hosts(across, &text);
	else
		across_print(across, &text);
	command_print("%s", buf_str(&text));
	return across_worst(across) == CHECK_BAD ? EXIT_CODE_BAD_NODE : EXIT_CODE_OK;
}

void doctor_add_reach(struct strv *reach, const struct strv *names, size_t self)
{
	for (size_t i = 1; i < names->count && i <= HOSTS_REACH_MAX; i++)
		strv_add(reach, names->items[(self + i) % names->count]);
}
