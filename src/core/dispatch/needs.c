#include "core/dispatch/needs.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

static bool lists_equal(char *const *a, char *const *b)
{
	if (!a || !b)
		return a == b;
	for (; *a && *b; a++, b++)
		if (!str_eq(*a, *b))
			return false;
	return *a == *b;
}

bool needs_equal(const struct needs *a, const struct needs *b)
{
	return lists_equal(a->hosts, b->hosts) && lists_equal(a->features, b->features);
}

static bool is_named(const char *name, const char *wanted)
{
	size_t len = strlen(wanted);
	return strncmp(name, wanted, len) == 0 && (name[len] == '\0' || name[len] == '.');
}

static bool has_feature(const char *features, const char *wanted)
{
	const char *rest = features, *piece;
	size_t len, wanted_len = strlen(wanted);
	while ((piece = str_split(&rest, ',', &len)))
		if (len == wanted_len && memcmp(piece, wanted, len) == 0)
			return true;
	return false;
}

bool needs_met(const struct needs *needs, const char *name, const char *features)
{
	bool named = !needs->hosts;
	for (char *const *host = needs->hosts; host && *host; host++)
		named |= is_named(name, *host);
	for (char *const *feature = needs->features; feature && *feature; feature++)
		if (!has_feature(features, *feature))
			return false;
	return named;
}

static void describe_list(char *const *list, const char *one, const char *between, struct buf *out)
{
	buf_append_str(out, one);
	for (char *const *item = list; *item; item++)
		buf_printf(out, "%s%s", item == list ? " " : between, *item);
}

bool needs_host_able(const struct host_facts *facts, const struct order_kind *kind)
{
	return kind->width <= facts->max_width && kind->memory <= facts->memory &&
	       (!kind->files || facts->files) &&
	       (!needs_any(&kind->needs) || needs_met(&kind->needs, facts->name ? facts->name : "",
						      facts->features ? facts->features : ""));
}

void needs_describe(const struct needs *needs, struct buf *out)
{
	if (needs->hosts)
		describe_list(needs->hosts, "host", " or ", out);
	if (needs->hosts && needs->features)
		buf_append_str(out, " with ");
	if (needs->features)
		describe_list(needs->features, needs->features[1] ? "features" : "feature", " and ",
			      out);
}

bool needs_feature_ok(const char *text)
{
	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._+:-", *c))
			return false;
	return *text && strlen(text) < NEEDS_NAME_MAX;
}

bool needs_features_ok(const char *list)
{
	const char *rest = list, *piece;
	size_t len;
	if (strlen(list) >= NEEDS_FEATURES_MAX)
		return false;
	while ((piece = str_split(&rest, ',', &len))) {
		char feature[NEEDS_NAME_MAX];
		if (len >= sizeof(feature))
			return false;
		memcpy(feature, piece, len);
		feature[len] = '\0';
		if (!needs_feature_ok(feature))
			return false;
	}
	return true;
}
