/* muster explain: what kind of failure a report or a log tells of. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/strv.h"
#include "cli/command.h"
#include "core/worker/exit_code.h"
#include "core/worker/judgement.h"
#include "proto/json_out.h"
#include "proto/json_value.h"
#include "proto/launcher_log.h"

#define FILE_MAX ((size_t)64 << 20)
#define DEPTH_MAX 3 /* directories below the one that is named */

extern const struct command command_explain;

struct explain_cli {
	bool json;
};

static const struct opt explain_opts[] = {
	OPT_FLAG("json", NULL, struct explain_cli, json, "for programs: an array of verdicts"),
	OPT_END,
};

struct explainer {
	struct json_out *json; /* NULL: for people */
	size_t known;	       /* files that say what it was */
};

/* ---- files ---- */

static bool is_worth_reading(const char *name)
{
	static const char *const patterns[] = { "report.json", "*.log", "*.out", "*.err", "*.txt" };
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		if (fnmatch(patterns[i], name, FNM_PERIOD) == 0)
			return true;
	return false;
}

static int list_files(const char *path, int depth, struct strv *files, struct err *err)
{
	struct stat info;
	if (stat(path, &info) < 0)
		return err_set(err, errno, "%s: %m", path);
	if (!S_ISDIR(info.st_mode)) {
		strv_add(files, path);
		return 0;
	}
	struct dirent **names = NULL;
	int count = depth < 0 ? 0 : scandir(path, &names, NULL, alphasort);
	if (count < 0)
		return err_set(err, errno, "%s: %m", path);
	for (int i = 0; i < count; i++) {
		AUTO_FREE char *inner = mem_printf("%s/%s", path, names[i]->d_name);
		bool is_dir = stat(inner, &info) == 0 && S_ISDIR(info.st_mode);
		if (*names[i]->d_name != '.' && is_dir)
			list_files(inner, depth - 1, files, NULL);
		else if (is_worth_reading(names[i]->d_name) && S_ISREG(info.st_mode))
			strv_add(files, inner);
		free(names[i]);
	}
	free(names);
	return 0;
}

/* ---- what they say ---- */

struct finding {
	char *headline; /* NULL: a plain log has none */
	char *class, *sure, *from, *symptom, *advice, *hint, *host;
	int64_t rank; /* -1: not known */
};

static void finding_done(struct finding *finding)
{
	char *const texts[] = { finding->headline, finding->class,  finding->sure, finding->from,
				finding->symptom,  finding->advice, finding->hint, finding->host };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
}

static char *text_of(struct json_value object, const char *key)
{
	return json_value_text(json_value_get(object, key));
}

static bool take_report(struct json_value root, struct finding *ret)
{
	struct json_value verdict = json_value_get(root, "verdict");
	struct json_value story = json_value_get(root, "story");
	AUTO_FREE char *kind = text_of(root, "muster");
	if (!kind || !str_eq(kind, "report") || story.kind != JSON_OBJECT)
		return false;
	*ret = (struct finding){
		.headline = text_of(story, "headline"),
		.class = text_of(verdict, "class"),
		.sure = text_of(verdict, "sure"),
		.from = text_of(verdict, "from"),
		.symptom = text_of(verdict, "symptom"),
		.advice = text_of(verdict, "do"),
		.hint = text_of(story, "try"),
		.host = text_of(verdict, "host"),
		.rank = -1,
	};
	json_value_int(json_value_get(verdict, "rank"), &ret->rank);
	return true;
}

static char *copy(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

static void take_log(const char *text, struct finding *ret)
{
	struct launcher_log log;
	struct judgement judgement;
	launcher_log_read(text, &log);
	judge_text(text, &judgement);
	if (judgement.class == CLASS_UNKNOWN)
		judge_failure(&(struct evidence){ .status = log.status }, &judgement);
	bool generic = judgement.hint && strstr(judgement.hint, "%s");
	*ret = (struct finding){
		.class = copy(failure_class_name(judgement.class)),
		.sure = copy(failure_certainty_name(judgement.certainty)),
		.from = copy(judgement.from),
		.symptom = copy(judgement.symptom),
		.advice = copy(failure_advice_name(judgement.advice)),
		.hint = generic ? NULL : copy(judgement.hint),
		.host = *log.host ? copy(log.host) : NULL,
		.rank = log.rank,
	};
}

/* ---- saying it ---- */

static void say(const char *path, const struct finding *f)
{
	printf("%s: ", path);
	if (f->headline)
		command_print("%s\n  ", f->headline);
	if (!f->from || str_eq(f->from, "none"))
		command_print("no known kind of failure");
	else
		command_print("%s (%s, from its %s%s%s)", f->class, f->sure, f->from,
			      f->symptom ? ": " : "", f->symptom ? f->symptom : "");
	if (f->rank >= 0)
		command_print("; rank %lld", (long long)f->rank);
	if (f->host)
		command_print(" on %s", f->host);
	if (f->advice && !str_eq(f->advice, "none"))
		command_print("; %s", f->advice);
	command_print("\n");
	if (f->hint)
		command_print("  try: %s\n", f->hint);
}

static void put(struct json_out *out, const char *path, const struct finding *f)
{
	json_out_open(out, NULL, '{');
	json_out_text(out, "file", path);
	json_out_text_if(out, "headline", f->headline);
	json_out_open(out, "verdict", '{');
	json_out_text(out, "class", f->class ? f->class : "unknown");
	if (f->rank >= 0)
		json_out_int(out, "rank", f->rank);
	json_out_text_if(out, "host", f->host);
	json_out_text_if(out, "sure", f->sure);
	json_out_text_if(out, "from", f->from);
	json_out_text_if(out, "symptom", f->symptom);
	json_out_text_if(out, "do", f->advice);
	json_out_close(out, '}');
	json_out_text_if(out, "try", f->hint);
	json_out_close(out, '}');
}

/* A directory has many files without a word of a failure. */
static int explain(struct explainer *explainer, const char *path, bool named, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	AUTO(finding_done) struct finding finding = { .rank = -1 };
	struct json_value root;
	int r = file_read(path, FILE_MAX, &text, err);
	if (r < 0)
		return r;
	const char *data = buf_str(&text);
	if (json_value_parse(data, buf_len(&text), &root) < 0 || !take_report(root, &finding))
		take_log(data, &finding);
	bool known = finding.class && !str_eq(finding.class, failure_class_name(CLASS_UNKNOWN));
	explainer->known += known;
	if (!known && !named && !finding.headline)
		return 0;
	if (explainer->json)
		put(explainer->json, path, &finding);
	else
		say(path, &finding);
	return 0;
}

static int explain_all(struct explainer *explainer, int count, char **paths)
{
	int status = EXIT_CODE_OK;
	for (int i = 0; i < count; i++) {
		AUTO(strv_done) struct strv files = STRV_INIT;
		struct err err = ERR_INIT;
		int r = list_files(paths[i], DEPTH_MAX, &files, &err);
		for (size_t k = 0; r == 0 && k < files.count; k++)
			r = explain(explainer, files.items[k], str_eq(files.items[k], paths[i]),
				    &err);
		if (r < 0) {
			log_error("%s", err.msg);
			status = EXIT_CODE_FAILED;
		}
	}
	return status;
}

static int explain_main(const struct command *self, int argc, char **argv)
{
	struct explain_cli cli = { .json = false };
	struct explainer explainer = { .json = NULL };
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_out out = JSON_OUT(&text, .indent = 2);
	int first, status;
	if (!command_parse(self, &cli, argc, argv, NULL, &first, &status))
		return status;
	if (first == argc)
		return command_usage_error(self,
					   "name a report.json, a log or a directory of them");
	if (cli.json) {
		explainer.json = &out;
		json_out_open(&out, NULL, '[');
	}
	status = explain_all(&explainer, argc - first, argv + first);
	if (cli.json) {
		json_out_close(&out, ']');
		puts(buf_str(&text));
	}
	return status ? status : explainer.known ? EXIT_CODE_OK : EXIT_CODE_FAILED;
}

const struct command command_explain = {
	.name = "explain",
	.synopsis = "[--json] FILE|DIRECTORY...",
	.summary = "say what kind of failure a report or the log of any launcher tells of",
	.opts = explain_opts,
	.mode = OPT_PERMUTE,
	.main = explain_main,
};
