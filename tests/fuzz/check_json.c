/* Results of checks and the output of users' own: any text is read or refused, and what was read
 * can be written and read back as the same. */
#include <stdlib.h>
#include <string.h>

#include "proto/checks/check_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct check_result *result)
{
	struct buf one = BUF_INIT, two = BUF_INIT;
	struct check_result again;
	struct json_out out = JSON_OUT(&one);
	check_json_write(&out, result);
	if (check_json_read(buf_str(&one), buf_len(&one), &again, NULL) < 0)
		abort();
	out = JSON_OUT(&two);
	check_json_write(&out, &again);
	if (strcmp(buf_str(&one), buf_str(&two)) != 0)
		abort();
	buf_done(&one);
	buf_done(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct check_result result, user = { .name = "user" };
	if (check_json_read((const char *)data, size, &result, NULL) == 0)
		check(&result);
	struct check_list all = CHECK_LIST_INIT;
	if (check_json_read_all((const char *)data, size, &all, NULL) == 0)
		for (size_t i = 0; i < all.count; i++)
			check(&all.items[i]);
	check_list_done(&all);
	if (check_json_figures((const char *)data, size, &user))
		check(&user);
	return 0;
}
