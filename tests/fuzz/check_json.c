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

/* Found again after the greeting of a login shell. */
static void check_all(const struct check_list *all)
{
	struct buf text = BUF_INIT;
	struct check_list again = CHECK_LIST_INIT;
	buf_append_str(&text, "{welcome}");
	check_json_write_all("node1", all, &text);
	if (check_json_find_all(buf_str(&text), buf_len(&text), &again, NULL) < 0 ||
	    again.count != all->count)
		abort();
	check_list_done(&again);
	buf_done(&text);
}

static void check_verdict(const char *text, size_t len)
{
	struct buf again = BUF_INIT;
	enum check_state worst, same;
	char name[256], name_again[256];
	check_json_host(text, len, name, sizeof(name));
	if (check_json_read_verdict(text, len, &worst, NULL) < 0)
		return;
	check_json_write_verdict(name, worst, &again);
	if (check_json_read_verdict(buf_str(&again), buf_len(&again), &same, NULL) < 0 ||
	    same != worst)
		abort();
	check_json_host(buf_str(&again), buf_len(&again), name_again, sizeof(name_again));
	if (strcmp(name, name_again) != 0)
		abort();
	buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_verdict((const char *)data, size);
	struct check_result result, user = { .name = "user" };
	if (check_json_read((const char *)data, size, &result, NULL) == 0)
		check(&result);
	struct check_list all = CHECK_LIST_INIT;
	if (check_json_read_all((const char *)data, size, &all, NULL) == 0)
		for (size_t i = 0; i < all.count; i++)
			check(&all.items[i]);
	check_list_done(&all);
	if (check_json_find_all((const char *)data, size, &all, NULL) == 0)
		check_all(&all);
	check_list_done(&all);
	if (check_json_figures((const char *)data, size, &user))
		check(&user);
	return 0;
}
