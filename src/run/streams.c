#include "run/streams.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "core/lines/stream_map.h"
#include "run/options.h"

#define PREFIX_VARIABLE "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"

static const struct {
	enum stream_mask bit;
	const char *file;
	const char *filter_file;
} kinds[] = {
	[OUTPUT_STDOUT] = { STREAM_STDOUT, "stdout.log", "filtered_stdout.log" },
	[OUTPUT_STDERR] = { STREAM_STDERR, "stderr.log", "filtered_stderr.log" },
};
static_assert(ARRAY_LEN(kinds) == OUTPUT_STREAM_COUNT, "every stream needs its names");

static const char *choose_prefix(const struct run_options *options)
{
	const char *from_env = getenv(PREFIX_VARIABLE);
	return options->prefix ? options->prefix : from_env && *from_env ? from_env : NULL;
}

static bool captures(const struct run_options *options, int fd)
{
	return options->capture == RUN_CAPTURE_ALWAYS ||
	       (options->capture == RUN_CAPTURE_AUTO && !isatty(fd));
}

int run_streams_make(const struct run_options *options, uint32_t nproc,
		     struct run_streams *ret_streams, struct err *err)
{
	AUTO(run_streams_done)
	struct run_streams streams = {
		.redirects = mem_alloc(nproc),
		.tee = mem_alloc(nproc),
		.shown = mem_alloc(nproc * sizeof(bool)),
		.prefix_all = options->prefix || options->merge_output,
		.tail_always = { captures(options, STDOUT_FILENO),
				 captures(options, STDERR_FILENO) },
		.tail_if_piped = options->capture != RUN_CAPTURE_NEVER,
		.output = { .prefix = choose_prefix(options),
			    .merge = options->merge_output ? nproc : 0,
			    .log_max_size = options->log_max_size },
	};
	if (stream_map_parse(options->redirects, nproc, streams.redirects, err) < 0)
		return err_wrap(err, "--redirects");
	if (stream_map_parse(options->tee, nproc, streams.tee, err) < 0)
		return err_wrap(err, "--tee");
	if (stream_ranks_parse(options->local_ranks_filter, nproc, streams.shown, err) < 0)
		return err_wrap(err, "--local-ranks-filter");
	if (options->duplicate_stdout_filters)
		stream_filters_parse(options->duplicate_stdout_filters,
				     &streams.output.filters[OUTPUT_STDOUT]);
	if (options->duplicate_stderr_filters)
		stream_filters_parse(options->duplicate_stderr_filters,
				     &streams.output.filters[OUTPUT_STDERR]);
	*ret_streams = streams;
	streams = RUN_STREAMS_INIT;
	return 0;
}

void run_streams_done(struct run_streams *streams)
{
	free(streams->redirects);
	free(streams->tee);
	free(streams->shown);
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++)
		strv_done(&streams->output.filters[i]);
	*streams = RUN_STREAMS_INIT;
}

static const char *own(struct strv *paths, char *path)
{
	strv_take(paths, path);
	return path;
}

char *run_streams_file(const struct run_streams *streams, const struct logdir *logdir,
		       uint32_t local_rank, enum output_stream kind)
{
	uint8_t kept = streams->tee[local_rank] | streams->redirects[local_rank];
	if (!logdir->attempt || !(kept & kinds[kind].bit))
		return NULL;
	return mem_printf("%s/%u/%s", logdir->attempt, local_rank, kinds[kind].file);
}

static struct output_route route(const struct run_streams *streams, const struct logdir *logdir,
				 uint32_t rank, enum output_stream kind, struct strv *paths)
{
	const char *attempt = logdir->attempt;
	bool tee = attempt && (streams->tee[rank] & kinds[kind].bit);
	bool redirect = attempt && (streams->redirects[rank] & kinds[kind].bit);
	bool shown = streams->shown[rank];
	struct output_route route = { .console = shown && (tee || !redirect),
				      .prefix = tee || streams->prefix_all };
	if (tee || redirect)
		route.file = own(paths, run_streams_file(streams, logdir, rank, kind));
	if (tee && shown && streams->output.filters[kind].count > 0)
		route.filter_file =
			own(paths, mem_printf("%s/%s", attempt, kinds[kind].filter_file));
	return route;
}

void run_streams_route(const struct run_streams *streams, const struct logdir *logdir,
		       uint32_t local_rank, struct strv *paths, struct output_worker *worker)
{
	for (int i = 0; i < OUTPUT_STREAM_COUNT; i++) {
		struct output_route *to = &worker->route[i];
		*to = route(streams, logdir, local_rank, (enum output_stream)i, paths);
		bool piped = to->file || (to->console && to->prefix);
		worker->keep_tail[i] = streams->tail_always[i] || (streams->tail_if_piped && piped);
	}
}
