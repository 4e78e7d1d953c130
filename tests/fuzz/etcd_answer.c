/* Whatever something that poses as etcd answers to any request: no crash, and what is accepted is
 * sane. The first byte says what was asked. */
#include <stdlib.h>
#include <string.h>

#include "proto/etcd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_key(const struct etcd_key *key)
{
	if (key->revision < 1 || strlen(key->value) >= ETCD_VALUE_MAX ||
	    (key->present && key->create_revision < 1))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct etcd_key key = { .present = false };
	enum etcd_watch what;
	struct err err = ERR_INIT;
	char token[ETCD_TOKEN_MAX], reason[ETCD_REASON_MAX];
	bool flag;
	int64_t lease;
	uint64_t ttl_s;
	if (size < 1)
		return 0;
	const char *text = (const char *)data + 1;
	size_t len = size - 1;
	switch (data[0] % 8) {
	case 0:
		if (etcd_get_read(text, len, &key, &err) == 0)
			check_key(&key);
		break;
	case 1:
		if (etcd_get_campaign(text, len, &flag, &key, &err) == 0)
			check_key(&key);
		break;
	case 2:
		if (etcd_get_grant(text, len, &lease, &ttl_s, &err) == 0 &&
		    (lease < 1 || ttl_s < 1))
			abort();
		break;
	case 3:
		etcd_get_keep(text, len, &flag, &err);
		break;
	case 4:
		if (etcd_get_token(text, len, token, &err) == 0 && strpbrk(token, "\r\n"))
			abort();
		break;
	case 5:
		etcd_get_watch(text, len, &what, &err);
		break;
	case 7:
		etcd_get_record(text, len, &flag, &err);
		break;
	default:
		etcd_get_error(text, len, reason);
		if (strlen(reason) >= ETCD_REASON_MAX)
			abort();
	}
	return 0;
}
