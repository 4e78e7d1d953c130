/* Every fuzz target takes each input of its corpus: a test for each target, of its name. */
#include "corpus.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define TARGETS_MAX 100

static TTest targets[TARGETS_MAX];
static size_t target_count;

void corpus_register(const char *name, void (*run)(int index))
{
	if (target_count == TARGETS_MAX)
		abort();
	TTest *target = &targets[target_count++];
	*target = (TTest){ name, run, __FILE__, __LINE__ };
	unit_register(target);
}

/* In memory of its very size, so that a byte behind it is a fault that tools see. */
static void give(const char *path, corpus_target *target)
{
	FILE *file = fopen(path, "rb");
	ck_assert_msg(file, "cannot open %s", path);
	ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
	size_t size = (size_t)ftell(file);
	rewind(file);
	uint8_t *data = malloc(size ? size : 1);
	ck_assert_uint_eq(fread(data, 1, size, file), size);
	fclose(file);
	target(data, size);
	free(data);
}

void corpus_replay(const char *name, corpus_target *target)
{
	char folder[PATH_MAX], path[PATH_MAX];
	tcase_fn_start(name, __FILE__, __LINE__);
	unit_running = name;
	target((const uint8_t *)"", 0);
	snprintf(folder, sizeof(folder), "tests/fuzz/corpus/%s", name);
	DIR *corpus = opendir(folder);
	ck_assert_msg(corpus, "no corpus in %s", folder);
	size_t given = 0;
	for (const struct dirent *entry; (entry = readdir(corpus));) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		given++;
		(_mark_point)(path, 1); /* what Check tells of a test that crashes */
		give(path, target);
	}
	closedir(corpus);
	ck_assert_uint_gt(given, 0);
}
