#include "batch/args/load_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "core/deal/files.h"
#include "proto/args/words.h"
#include "proto/shell.h"
#include "sys/hwloc_topology.h"

#define LINE_MAX_BYTES ((ssize_t)1 << 20)
#define INPUT_MAX_BYTES ((size_t)1 << 32)
#define STDIN_NAME "standard input"

/* ---- lists of orders ---- */

static int read_lines(struct orders *orders, FILE *file, const char *name, struct err *err)
{
	AUTO_FREE char *line = NULL;
	size_t cap = 0;
	uint32_t number = 0;
	errno = 0;
	for (ssize_t len; (len = getline(&line, &cap, file)) > 0; errno = 0) {
		number++;
		int r = len > LINE_MAX_BYTES
				? err_set(err, EFBIG, "longer than %zd bytes", LINE_MAX_BYTES)
				: orders_add_line(orders, line, (size_t)len, number, err);
		if (r < 0)
			return err_wrap(err, "%s:%u", name, number);
	}
	return ferror(file) ? err_set(err, errno ? errno : EIO, "%s: %m", name) : 0;
}

static int read_list(struct orders *orders, const char *path, struct err *err)
{
	if (str_eq(path, "-"))
		return read_lines(orders, stdin, STDIN_NAME, err);
	FILE *file = fopen(path, "re");
	if (!file)
		return err_set(err, errno, "%s: %m", path);
	int r = read_lines(orders, file, path, err);
	fclose(file);
	return r;
}

/* ---- sources of arguments ---- */

/* Everything a command is filled with. */
struct inputs {
	struct arg_cutter cutter;
	struct arg_sources sources, params;
};

static void inputs_done(struct inputs *inputs)
{
	arg_cutter_done(&inputs->cutter);
	arg_sources_done(&inputs->sources);
	arg_sources_done(&inputs->params);
}

static int init_cutter(struct inputs *inputs, const struct arg_options *options, struct err *err)
{
	struct arg_format format = { .end = options->null_ends ? '\0' : '\n',
				     .csv = options->csv,
				     .skip_empty = options->skip_empty,
				     .colsep = options->colsep,
				     .eof = options->eof };
	const char *delimiter = options->delimiter;
	static const struct {
		const char *text;
		char end;
	} escapes[] = { { "\\n", '\n' }, { "\\t", '\t' }, { "\\0", '\0' }, { "\\r", '\r' } };
	for (size_t i = 0; delimiter && i < ARRAY_LEN(escapes); i++)
		if (str_eq(delimiter, escapes[i].text)) {
			format.end = escapes[i].end;
			delimiter = NULL;
		}
	if (delimiter && strlen(delimiter) != 1)
		return err_set(err, EINVAL, "the delimiter must be one character, not '%s'",
			       delimiter);
	if (delimiter)
		format.end = *delimiter;
	return arg_cutter_init(&inputs->cutter, &format, err);
}

static int add_file(struct inputs *inputs, const char *path, bool linked, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct arg_source *source = arg_sources_append(&inputs->sources, err);
	if (!source)
		return -E2BIG;
	source->linked = linked;
	bool standard = str_eq(path, "-");
	int r = standard ? fd_read_all(STDIN_FILENO, INPUT_MAX_BYTES, &text, err)
			 : file_read(path, INPUT_MAX_BYTES, &text, err);
	if (r >= 0)
		r = arg_records_read(&source->records, &inputs->cutter, (char *)buf_data(&text),
				     buf_len(&text), err);
	if (r < 0 && standard)
		return err_wrap(err, STDIN_NAME);
	return r;
}

static int add_list(struct inputs *inputs, const struct arg_list *list, struct err *err)
{
	int r = 0;
	if (!list->files)
		return arg_sources_add_words(&inputs->sources, list, &inputs->cutter, err);
	for (size_t i = 0; r >= 0 && i < list->count; i++)
		r = add_file(inputs, list->words[i], list->linked, err);
	return r;
}

static int add_params(struct inputs *inputs, const struct arg_options *options, struct err *err)
{
	for (size_t i = 0; i + 2 < options->scans.count; i += 3) {
		struct arg_source *source = arg_sources_append(&inputs->params, err);
		char *const *words = options->scans.items + i;
		const char *step = options->step ? options->step : "1";
		if (!source)
			return -E2BIG;
		if (arg_source_scan(source, words[0], words[1], words[2], step, err) < 0)
			return err_wrap(err, "option '--parameter-scan'");
	}
	for (size_t i = 0; i + 1 < options->lists.count; i += 2) {
		struct arg_source *source = arg_sources_append(&inputs->params, err);
		if (!source)
			return -E2BIG;
		arg_source_list(source, options->lists.items[i], options->lists.items[i + 1]);
	}
	return 0;
}

static int read_sources(struct inputs *inputs, const struct arg_options *options,
			const struct arg_words *words, bool from_stdin, struct err *err)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < options->files.count; i++)
		r = add_file(inputs, options->files.items[i], false, err);
	for (size_t i = 0; r >= 0 && i < words->list_count; i++)
		r = add_list(inputs, &words->lists[i], err);
	if (r >= 0 && from_stdin)
		r = add_file(inputs, "-", false, err);
	inputs->sources.all_linked = options->link;
	return r >= 0 && options->header ? arg_sources_take_header(&inputs->sources, err) : r;
}

/* ---- orders from a command ---- */

/* How many orders run at a time, before the plan is made: for -m and -X. */
static size_t jobs_of(const struct batch_config *config)
{
	struct cpuset affinity;
	int cpus = topology_affinity(&affinity, NULL) < 0 ? 1 : cpuset_count(&affinity);
	if (config->jobs_percent > 0)
		return (size_t)MAX(cpus * config->jobs_percent / 100, 1.0);
	return config->jobs ? (size_t)config->jobs : (size_t)cpus;
}

static struct arg_filling make_filling(const struct batch_config *config,
				       const struct inputs *inputs, const char *command)
{
	const struct arg_options *options = &config->args;
	bool makes_path = config->results && strchr(config->results, '{');
	return (struct arg_filling){
		.command = { .text = command,
			     .replace = options->replace,
			     .context = options->context },
		.sources = inputs->sources.count ? &inputs->sources : NULL,
		.params = inputs->params.count ? &inputs->params : NULL,
		.tag = options->tag_text ? options->tag_text
		       : options->tag	 ? "{}"
					 : NULL,
		.output = makes_path ? config->results : NULL,
		.fill = options->context || options->spread ? ARG_FILL_SPREAD
			: options->line			    ? ARG_FILL_LINE
							    : ARG_FILL_ROW,
		.max_rows = options->max_args > 0 ? (size_t)options->max_args : 0,
		.max_chars = (size_t)options->max_chars,
		.jobs = jobs_of(config),
		.drop = options->max_args == 0,
	};
}

static int add_commands(struct orders *orders, const struct batch_config *config,
			const struct inputs *inputs, const struct arg_words *words, struct err *err)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < words->command_count; i++) {
		if (*words->command[i] == '-')
			return err_set(err, EINVAL,
				       "'%s' stands behind a command: options come first",
				       words->command[i]);
		struct arg_filling filling = make_filling(config, inputs, words->command[i]);
		r = orders_add_filled(orders, &filling, err);
	}
	return r;
}

static int add_template(struct orders *orders, const struct batch_config *config,
			const struct inputs *inputs, const struct arg_words *words, struct err *err)
{
	AUTO_FREE char *command = arg_words_command(words, config->args.quote);
	struct arg_filling filling = make_filling(config, inputs, command);
	return orders_add_filled(orders, &filling, err);
}

/* ---- what the words mean ---- */

/* A script or a binary, rather than a list that happens to be executable. */
static bool is_executable(const char *path)
{
	AUTO(buf_done) struct buf start = BUF_INIT;
	FILE *file = path_is_program(path) ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	char head[4] = "";
	size_t n = fread(head, 1, sizeof(head), file);
	fclose(file);
	return (n >= 2 && memcmp(head, "#!", 2) == 0) ||
	       (n == sizeof(head) && memcmp(head, "\177ELF", sizeof(head)) == 0);
}

static bool is_program(const char *word)
{
	AUTO(strv_done) struct strv argv = STRV_INIT;
	if (!shell_split_plain(word, &argv))
		/* A line for the shell, unless it is the path of a list that has blanks or quotes.
		 */
		return access(word, F_OK) < 0 || is_executable(word);
	const char *name = argv.items[0];
	if (strchr(name, '/'))
		return is_executable(name);
	AUTO_FREE char *path = path_search(name, NULL);
	return path != NULL;
}

static bool is_list(const char *word)
{
	struct stat info;
	if (str_eq(word, "-"))
		return true;
	return stat(word, &info) == 0 && !S_ISDIR(info.st_mode) &&
	       !(strchr(word, '/') && is_executable(word));
}

static bool stdin_is_data(void)
{
	struct stat info;
	return fstat(STDIN_FILENO, &info) == 0 &&
	       (S_ISFIFO(info.st_mode) || S_ISREG(info.st_mode) || S_ISSOCK(info.st_mode));
}

static enum batch_words meaning_of(const struct batch_config *config, const struct arg_words *words)
{
	const struct arg_options *options = &config->args;
	const char *first = words->command_count ? words->command[0] : NULL;
	bool has_params = options->scans.count || options->lists.count;
	struct batch_words_facts facts = {
		.has_words = first != NULL,
		.has_sources = words->list_count || options->files.count,
		.measures = has_params || config->runs != 1 || config->warmup > 0,
		.stdin_is_data = stdin_is_data(),
		.is_list = first && !has_params && is_list(first),
		.is_program = first && is_program(first),
	};
	return batch_words_decide(&facts);
}

static int refuse(enum batch_words meaning, const char *first, struct err *err)
{
	switch (meaning) {
	case BATCH_WORDS_BOTH:
		return err_set(err, EINVAL,
			       "%s is a file here and a program: write ./%s for the list of "
			       "orders, or -a - before the command",
			       first, first);
	case BATCH_WORDS_UNKNOWN:
		return err_set(err, ENOENT,
			       "%s: no such list of orders, and no such program; to run a command, "
			       "put ::: and arguments after it",
			       first);
	default:
		return err_set(err, EINVAL,
			       "no orders: name a file, - for standard input, or a command with "
			       ":::");
	}
}

/* A terminal, or /dev/null: the user has forgotten the arguments. */
static bool stdin_is_device(void)
{
	struct stat st;
	return fstat(STDIN_FILENO, &st) == 0 && S_ISCHR(st.st_mode);
}

static int load(struct orders *orders, const struct batch_config *config, enum batch_words meaning,
		const struct arg_words *words, struct err *err)
{
	AUTO(inputs_done)
	struct inputs inputs = { .sources = ARG_SOURCES_INIT, .params = ARG_SOURCES_INIT };
	int r = init_cutter(&inputs, &config->args, err);
	if (r >= 0)
		r = add_params(&inputs, &config->args, err);
	switch (r < 0 ? BATCH_WORDS_COUNT : meaning) {
	case BATCH_WORDS_LISTS:
		for (size_t i = 0; r >= 0 && i < words->command_count; i++)
			r = read_list(orders, words->command[i], err);
		return r;
	case BATCH_WORDS_STDIN_LIST:
		return read_list(orders, "-", err);
	case BATCH_WORDS_COMMANDS:
		return add_commands(orders, config, &inputs, words, err);
	case BATCH_WORDS_SOURCES:
	case BATCH_WORDS_STDIN_ARGS:
		if (meaning == BATCH_WORDS_STDIN_ARGS && stdin_is_device())
			return err_set(err, EINVAL,
				       "the arguments would come from %s: give them after :::, or "
				       "-a - to read them there; -r 10 measures the commands "
				       "themselves",
				       isatty(STDIN_FILENO) ? "the terminal" : "a device");
		r = read_sources(&inputs, &config->args, words, meaning == BATCH_WORDS_STDIN_ARGS,
				 err);
		return r < 0 ? r : add_template(orders, config, &inputs, words, err);
	case BATCH_WORDS_COUNT:
		return r;
	default:
		return refuse(meaning, words->command_count ? words->command[0] : "", err);
	}
}

/* ---- names ---- */

static int name_orders(struct orders *orders, const struct strv *names, struct err *err)
{
	if (names->count > orders->count)
		return err_set(err, EINVAL, "%zu names for %zu orders", names->count,
			       orders->count);
	for (size_t i = 0; i < names->count; i++) {
		if (strlen(names->items[i]) > ORDER_ID_MAX || !*names->items[i])
			return err_set(err, EINVAL, "a name must have 1 to %d bytes", ORDER_ID_MAX);
		free(orders->items[i].id);
		orders->items[i].id = mem_strdup(names->items[i]);
		orders->items[i].named = true;
	}
	return 0;
}

/* ---- files that move with orders ---- */

static int add_path(struct strv *paths, const char *option, char *path, struct err *err)
{
	int r = 0;
	if (!files_path_ok(path))
		r = err_set(
			err, EINVAL,
			"%s: '%.200s' is not a file beneath the working directory; in /DIR/./FILE, "
			"what is behind /./ is",
			option, path);
	else if (paths->count == FILES_MAX)
		r = err_set(err, EINVAL, "%s: more than %d files for one order", option, FILES_MAX);
	else
		strv_add(paths, path);
	free(path);
	return r;
}

static int add_paths(struct order *order, const struct strv *templates, struct strv *paths,
		     const char *option, struct err *err)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < templates->count; i++)
		r = add_path(paths, option, load_hook(order, templates->items[i]), err);
	return r;
}

static int add_files(struct orders *orders, const struct file_options *files, bool listed,
		     struct err *err)
{
	const struct strv *templates[] = { &files->transfer, &files->returns };
	bool braces = files->args;
	for (size_t i = 0; i < ARRAY_LEN(templates); i++)
		for (size_t n = 0; n < templates[i]->count; n++)
			braces |= strchr(templates[i]->items[n], '{') != NULL;
	if (listed && braces)
		return err_set(
			err, EINVAL,
			"--transfer, --trc and {} are about the arguments of a command; in a "
			"list, \"transfer\" and \"return\" name the files of an order");
	for (size_t i = 0; file_options_given(files) && i < orders->count; i++) {
		struct order *order = &orders->items[i];
		struct order_extra *extra = order_extra(order);
		int r = 0;
		for (size_t n = 0; files->args && r >= 0 && n < extra->args.count; n++)
			r = add_path(&extra->transfer, "--transfer",
				     mem_strdup(extra->args.items[n]), err);
		if (r >= 0)
			r = add_paths(order, &files->transfer, &extra->transfer, "--transferfile",
				      err);
		if (r >= 0)
			r = add_paths(order, &files->returns, &extra->returns, "--return", err);
		if (r < 0)
			return r;
		extra->cleanup |= files->cleanup;
	}
	return 0;
}

int load_orders(struct orders *orders, const struct batch_config *config, int argc,
		char *const *argv, struct err *err)
{
	struct arg_words words;
	int r = arg_words_parse(&words, argc, argv, err);
	if (r < 0)
		return r;
	enum batch_words meaning = meaning_of(config, &words);
	r = load(orders, config, meaning, &words, err);
	bool listed = meaning == BATCH_WORDS_LISTS || meaning == BATCH_WORDS_STDIN_LIST;
	if (r >= 0 && listed && config->results && strchr(config->results, '{'))
		r = err_set(err, EINVAL,
			    "--results=%s is about the arguments of a command, not about a list",
			    config->results);
	if (r >= 0)
		r = add_files(orders, &config->files, listed, err);
	if (r >= 0)
		r = name_orders(orders, &config->args.names, err);
	if (r < 0)
		return r;
	/* Who repeats an argument means it; a line that is in a list twice may be a mistake. */
	bool allow = config->allow_duplicates || !listed;
	r = orders_check_unique(orders, allow, err);
	return r == -EEXIST && !allow ? err_wrap(err, "duplicate (see --allow-duplicates)") : r;
}

char *load_hook(const struct order *order, const char *command)
{
	const struct order_extra *extra = order->extra;
	if (!extra || extra->args.count == 0 || !strchr(command, '{'))
		return mem_strdup(command);
	struct arg_row row = { .args = (const char **)extra->args.items,
			       .count = extra->args.count };
	struct buf text = BUF_INIT;
	arg_template_expand(&(struct arg_template){ .text = command,
						    .closed = true,
						    .param_names = &extra->arg_names },
			    &(struct arg_values){ .row = &row, .params = &row }, &text);
	return buf_take_str(&text);
}
