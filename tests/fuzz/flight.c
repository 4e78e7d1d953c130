/* Records of the flight recorder: any JSON or pickle is read or refused, and what was read can be
 * written, read back and joined. */
#include <stdlib.h>
#include <string.h>

#include "core/collectives/host_arrivals.h"
#include "proto/flight.h"
#include "run/forensics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two ranks whose clocks are known. */
static void join_init_pair(const struct record *record, const struct record *other,
			   struct join *join)
{
	static const struct wall_offset clock = { .offset_ns = INT64_MIN, .error_ns = 1 };
	join_done(join);
	join_init(join, 2);
	join_add(join, 0, record, 0);
	join_add(join, 1, other, 0);
	join_set_clock(join, 0, &clock);
	join_set_clock(join, 1, &(struct wall_offset){ .error_ns = 1 });
}

/* Two workers of a host with others elsewhere, then of one alone. */
static void look_as_host(const struct record *record, const struct record *other)
{
	const struct record records[] = { *record, *other };
	struct host_arrivals host = HOST_ARRIVALS_INIT;
	for (uint32_t nodes = 2; nodes > 0; nodes--) {
		host_arrivals_begin(&host, nodes - 1, 2, 2 * nodes, nodes, INT64_MIN);
		for (int i = 0; i < 2; i++)
			host_arrivals_look(&host, records, i, NS_PER_S);
	}
	host_arrivals_done(&host);
}

static void check(const struct record *record)
{
	struct buf one = BUF_INIT, two = BUF_INIT, said = BUF_INIT;
	struct record again = RECORD_INIT;
	struct findings findings;
	struct laggards laggards;
	struct join join;
	struct json_out out = JSON_OUT(&one);
	flight_write(&out, NULL, record);
	if (flight_read_json(buf_str(&one), buf_len(&one), &again, NULL) < 0)
		abort();
	out = JSON_OUT(&two);
	flight_write(&out, NULL, &again);
	if (strcmp(buf_str(&one), buf_str(&two)) != 0)
		abort();
	join_init(&join, 3);
	join_add(&join, 0, record, UINT64_MAX);
	join_add(&join, 1, &again, 0);
	join_add_silent(&join, 2, "why");
	join_judge(&join, NS_PER_S, &findings);
	findings_text(&findings, &join, NULL, NULL, &said);
	findings_done(&findings);
	join_init_pair(record, &again, &join);
	arrivals_judge(&join, &laggards);
	laggards_done(&laggards);
	join_done(&join);
	look_as_host(record, &again);
	record_done(&again);
	buf_done(&one);
	buf_done(&two);
	buf_done(&said);
}

/* The answer of another host. */
static void check_host(const char *text, size_t len)
{
	struct buf out = BUF_INIT;
	struct forensics forensics;
	forensics_begin(&forensics);
	if (forensics_read(&forensics, "host", text, len, NULL) == 0)
		forensics_write(&forensics, &(struct wall_offset){ .error_ns = 1 }, &out);
	forensics_judge(&forensics, 4, 0);
	forensics_collectives(&forensics, &out);
	struct blame blame;
	forensics_blame(&forensics, true, &blame);
	forensics_done(&forensics);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record record = RECORD_INIT;
	if (size < 1)
		return 0;
	const char *text = (const char *)data + 1;
	if (data[0] == 'p' ? flight_read_pickle(text, size - 1, &record, NULL) == 0
			   : flight_read_json(text, size - 1, &record, NULL) == 0)
		check(&record);
	record_reopen_last(&record);
	if (data[0] == 'm')
		flight_read_more(text, size - 1, &record, NULL);
	if (data[0] == 'g')
		flight_read_groups(text, size - 1, &record, NULL);
	if (data[0] == 'h')
		check_host(text, size - 1);
	record_done(&record);
	return 0;
}
