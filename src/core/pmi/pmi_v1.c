/* PMI-1: what each line of a rank asks for. */
#include <stdio.h>

#include "core/pmi/pmi_private.h"

#define SPAWN_END "endcmd"

/* Printf's arguments for "%.*s". */
#define TEXT(bytes) (int)(bytes).len, (const char *)(bytes).data

static bool starts_with(struct bytes text, const char *start)
{
	size_t len = strlen(start);
	return text.len >= len && memcmp(text.data, start, len) == 0;
}

static void on_init(struct step *s, struct bytes line)
{
	int64_t version = 0;
	pmi_line_number(line, "pmi_version", &version);
	step_say(s, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=%d\n",
		 version == 1 ? 0 : -1);
	if (version == 1)
		step_rank(s)->state = PMI_TALKS;
}

static void on_get_maxes(struct step *s, struct bytes line UNUSED)
{
	step_say(s, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n", PMI_NAME_MAX,
		 PMI_KEY_MAX, PMI_VALUE_MAX);
}

static void on_get_appnum(struct step *s, struct bytes line UNUSED)
{
	step_say(s, "cmd=appnum appnum=%u\n", s->pmi->config.appnum);
}

static void on_get_my_kvsname(struct step *s, struct bytes line UNUSED)
{
	step_say(s, "cmd=my_kvsname kvsname=%s\n", s->pmi->config.kvsname);
}

static void on_get_universe_size(struct step *s, struct bytes line UNUSED)
{
	step_say(s, "cmd=universe_size size=%u\n", s->pmi->config.world_size);
}

/* ---- pairs ---- */

/* The key, if the request is about the world of this attempt. */
static bool key_of(const struct step *s, struct bytes line, struct bytes *ret_key)
{
	struct bytes name;
	return pmi_line_get(line, "kvsname", &name) &&
	       bytes_eq(name, bytes_str(s->pmi->config.kvsname)) &&
	       pmi_line_get(line, "key", ret_key) && ret_key->len > 0 && ret_key->len < PMI_KEY_MAX;
}

static const char *put(struct step *s, struct bytes line)
{
	struct bytes key, value;
	if (!key_of(s, line, &key))
		return "wrong_name_or_key";
	if (starts_with(key, "PMI_"))
		return "reserved_key";
	if (!pmi_line_get(line, "value", &value))
		value = bytes_of("", 0);
	if (value.len > PMI_VALUE_MAX)
		return "value_too_long";
	return step_put(s, key, value) ? NULL : "no_room";
}

static void on_put(struct step *s, struct bytes line)
{
	const char *problem = put(s, line);
	step_say(s, "cmd=put_result rc=%d msg=%s\n", problem ? 1 : 0,
		 problem ? problem : "success");
}

static void on_get(struct step *s, struct bytes line)
{
	struct bytes key, value = bytes_of("", 0);
	struct pmi_rank *rank = step_rank(s);
	if (!key_of(s, line, &key)) {
		step_say(s, "cmd=get_result rc=-1 msg=wrong_name_or_key value=unknown\n");
		return;
	}
	rank->waits = PMI_WAITS_GET;
	if (bytes_eq(key, bytes_str("PMI_dead_processes"))) {
		pmi_v1_answer(s, true, key, value);
	} else if (bytes_eq(key, bytes_str("PMI_process_mapping"))) {
		rank->waits = PMI_WAITS_MAPPING;
		if (s->pmi->mapped)
			pmi_v1_answer(s, true, key, value);
	} else if (starts_with(key, "PMI_")) {
		pmi_v1_answer(s, false, key, value);
	} else {
		bool found = keyvals_get(&s->pmi->keyvals, key, &value);
		if (found || !s->pmi->withheld)
			pmi_v1_answer(s, found, key, value);
		else
			step_want(s, PMI_WAITS_GET, WANT_KEY, key, value);
	}
}

/* ---- ends ---- */

static void on_barrier_in(struct step *s, struct bytes line UNUSED)
{
	step_enter_barrier(s);
}

static void on_finalize(struct step *s, struct bytes line UNUSED)
{
	step_say(s, "cmd=finalize_ack rc=0\n");
	step_rank(s)->state = PMI_FINALIZED;
}

static void on_abort(struct step *s, struct bytes line)
{
	int64_t code = 1;
	struct bytes text = bytes_of("", 0);
	pmi_line_number(line, "exitcode", &code);
	if (!pmi_line_rest(line, "message", &text))
		pmi_line_rest(line, "error_msg", &text);
	step_abort(s, (int)code, text);
}

/* ---- names that programs publish ---- */

/* Ports of services stand among the pairs, under keys that puts cannot have. */
static bool service_of(struct bytes line, char room[PMI_LINE_MAX], struct bytes *ret_key)
{
	struct bytes service;
	if (!pmi_line_get(line, "service", &service) || service.len >= PMI_NAME_MAX)
		return false;
	int len = snprintf(room, PMI_LINE_MAX, "PMI_service.%.*s", TEXT(service));
	*ret_key = bytes_of(room, (size_t)len);
	return true;
}

static void on_publish(struct step *s, struct bytes line)
{
	char room[PMI_LINE_MAX];
	struct bytes key, port;
	if (service_of(line, room, &key) && pmi_line_get(line, "port", &port) &&
	    port.len <= PMI_VALUE_MAX)
		step_want(s, PMI_WAITS_PUBLISH, WANT_SET, key, port);
	else
		step_say(s, "cmd=publish_result rc=-1 msg=cannot_publish\n");
}

static void on_unpublish(struct step *s, struct bytes line)
{
	char room[PMI_LINE_MAX];
	struct bytes key;
	if (service_of(line, room, &key))
		step_want(s, PMI_WAITS_UNPUBLISH, WANT_UNSET, key, bytes_of("", 0));
	else
		step_say(s, "cmd=unpublish_result rc=-1 msg=not_published\n");
}

static void on_lookup(struct step *s, struct bytes line)
{
	char room[PMI_LINE_MAX];
	struct bytes key;
	if (service_of(line, room, &key))
		step_want(s, PMI_WAITS_LOOKUP, WANT_KEY, key, bytes_of("", 0));
	else
		step_say(s, "cmd=lookup_result rc=-1 msg=not_published\n");
}

/* ---- answers ---- */

static void say_value(struct step *s, bool found, struct bytes key, struct bytes value)
{
	if (found)
		step_say(s, "cmd=get_result rc=0 msg=success value=%.*s\n", TEXT(value));
	else
		step_say(s, "cmd=get_result rc=-1 msg=key_%.*s_not_found value=unknown\n",
			 TEXT(key));
}

void pmi_v1_answer(struct step *s, bool found, struct bytes key, struct bytes value)
{
	struct buf *mapping = &s->pmi->mapping;
	enum pmi_wait waits = step_rank(s)->waits;
	step_rank(s)->waits = PMI_WAITS_NOT;
	switch (waits) {
	case PMI_WAITS_GET:
		say_value(s, found, key, value);
		break;
	case PMI_WAITS_MAPPING:
		if (buf_len(mapping))
			say_value(s, true, key, bytes_of(buf_data(mapping), buf_len(mapping)));
		else
			step_say(s, "cmd=get_result rc=-1 msg=too_long value=unknown\n");
		break;
	case PMI_WAITS_PUBLISH:
		step_say(s, "cmd=publish_result rc=%d msg=%s\n", found ? 0 : -1,
			 found ? "success" : "cannot_publish");
		break;
	case PMI_WAITS_UNPUBLISH:
		step_say(s, "cmd=unpublish_result rc=%d msg=%s\n", found ? 0 : -1,
			 found ? "success" : "not_published");
		break;
	case PMI_WAITS_LOOKUP:
		if (found)
			step_say(s, "cmd=lookup_result rc=0 port=%.*s\n", TEXT(value));
		else
			step_say(s, "cmd=lookup_result rc=-1 msg=not_published\n");
		break;
	case PMI_WAITS_NOT:
	case PMI_WAITS_BARRIER:
		break;
	}
}

/* ---- what we do not serve: an error, never a hang ---- */

/* Several commands come one after the other, and get one answer. */
static void in_spawn(struct step *s, struct bytes line)
{
	struct pmi_rank *rank = step_rank(s);
	int64_t number;
	if (pmi_line_number(line, "totspawns", &number))
		rank->spawns = (uint32_t)number;
	if (pmi_line_number(line, "spawnssofar", &number))
		rank->spawns_so_far = (uint32_t)number;
	if (!bytes_eq(line, bytes_str(SPAWN_END)))
		return;
	rank->in_spawn = false;
	if (rank->spawns_so_far >= rank->spawns)
		step_say(s, "cmd=spawn_result rc=-1 msg=not_supported\n");
}

static void refuse(struct step *s, struct bytes name)
{
	step_say(s, "cmd=%.*s_result rc=-1 msg=not_supported\n", TEXT(name));
}

static const struct {
	const char *name;
	bool early; /* also before init */
	void (*take)(struct step *s, struct bytes line);
} commands[] = {
	{ "init", true, on_init },
	{ "get_maxes", false, on_get_maxes },
	{ "get_appnum", false, on_get_appnum },
	{ "get_my_kvsname", false, on_get_my_kvsname },
	{ "get_universe_size", false, on_get_universe_size },
	{ "put", false, on_put },
	{ "get", false, on_get },
	{ "barrier_in", false, on_barrier_in },
	{ "finalize", false, on_finalize },
	{ "abort", true, on_abort },
	{ "publish_name", false, on_publish },
	{ "unpublish_name", false, on_unpublish },
	{ "lookup_name", false, on_lookup },
	{ "singinit", true, NULL },
	{ "create_kvs", false, NULL },
	{ "destroy_kvs", false, NULL },
	{ "getbyidx", false, NULL },
	{ "spawn", false, NULL },
};

static bool may_ask(const struct step *s, bool early)
{
	return early || step_rank(s)->state == PMI_TALKS;
}

static void take_command(struct step *s, struct bytes name, struct bytes line)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (!bytes_eq(name, bytes_str(commands[i].name)))
			continue;
		if (!may_ask(s, commands[i].early))
			step_blame(s, "it asked for %s without init", commands[i].name);
		else if (commands[i].take)
			commands[i].take(s, line);
		else
			refuse(s, name);
		return;
	}
	step_blame(s, "it sent the command '%.*s', which is none of PMI-1", MIN((int)name.len, 40),
		   (const char *)name.data);
}

void pmi_v1_take(struct step *s, struct bytes line)
{
	struct bytes name;
	/* Between a request and its answer a rank waits; what else comes then would be answered in
	 * the wrong order. */
	if (step_rank(s)->waits != PMI_WAITS_NOT) {
		if (starts_with(line, "cmd=abort"))
			on_abort(s, line);
		else
			step_blame(s, "it did not wait for the answer to its last request");
	} else if (step_rank(s)->in_spawn) {
		in_spawn(s, line);
	} else if (bytes_eq(line, bytes_str("mcmd=spawn"))) {
		step_rank(s)->in_spawn = true;
		step_rank(s)->spawns = step_rank(s)->spawns_so_far = 0;
	} else if (pmi_line_get(line, "cmd", &name)) {
		take_command(s, name, line);
	} else {
		step_blame(s, "it sent a line that is not of PMI-1");
	}
}
