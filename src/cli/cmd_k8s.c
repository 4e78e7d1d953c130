/* muster k8s: print a manifest that runs `muster run` on Kubernetes. */
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/run_opts.h"
#include "core/worker/exit_code.h"
#include "proto/k8s/manifest.h"

#define SHM_DEFAULT ((uint64_t)2 << 30)

extern const struct command command_k8s;

struct k8s_options {
	int kind;
	const char *name, *name_space, *image, *runtime;
	const char *cpu, *memory;
	int64_t gpus;
	uint64_t shm_bytes;
};

static const char *const kinds[] = {
	[MANIFEST_JOB] = "job", [MANIFEST_JOBSET] = "jobset", [MANIFEST_TRAINJOB] = "trainjob", NULL
};

#define O struct k8s_options

static const struct opt k8s_opts[] = {
	OPT_CHOICE(
		"kind", NULL, O, kind, kinds,
		"an Indexed Job with its Service (default), a JobSet, or a TrainJob of Kubeflow"),
	OPT_STR("name", NULL, O, name, "NAME", "of the job (default 'muster')"),
	OPT_STR("namespace", NULL, O, name_space, "NAME", "where it runs (default: not said)"),
	OPT_STR("image", NULL, O, image, "IMAGE", "what its pods run; needs muster and the script"),
	OPT_INT("gpus", NULL, O, gpus, "N", "GPUs of each pod (default 0)"),
	OPT_STR("cpu", NULL, O, cpu, "AMOUNT", "CPUs of each pod, such as 8"),
	OPT_STR("memory", NULL, O, memory, "AMOUNT", "memory of each pod, such as 64Gi"),
	OPT_SIZE("shm-size", NULL, O, shm_bytes, "SIZE",
		 "/dev/shm of each pod, which counts as its memory (default 2G)"),
	OPT_STR("runtime", NULL, O, runtime, "NAME",
		"ClusterTrainingRuntime of a TrainJob (default torch-distributed)"),
	OPT_END,
};

#undef O

/* What follows "--" is what follows `muster run`; its own options say how many pods there are and
 * how long they take to stop. */
static int read_run(int argc, char **argv, struct manifest *manifest, struct err *err)
{
	struct run_options run = run_options_default;
	struct opt_seen seen;
	uint32_t min;
	int first = opt_parse(run_opts, OPT_STOP_AT_POSITIONAL, &run, argc, argv, &seen, err);
	if (first < 0)
		return first;
	if (first >= argc) /* also after --help */
		return err_set(err, EINVAL,
			       "no command given: what muster run is to start comes after --");
	if (run.hosts.list || run.hosts.file)
		return err_set(err, EINVAL, "--hosts: Kubernetes chooses the hosts");
	manifest->shutdown_ns =
		run.shutdown_ns != NS_NEVER ? run.shutdown_ns : RUN_SHUTDOWN_DEFAULT_S * NS_PER_S;
	manifest->notice_ns = run.notice_ns;
	manifest->own_exit_map = opt_given(run_opts, &seen, "exit-map");
	manifest->args = argv + 1;
	int r = run_nodes_parse(run.rdzv.nnodes, &min, &manifest->nodes, err);
	manifest->elastic = r == 0 && min < manifest->nodes;
	return r;
}

static int make(const struct k8s_options *o, int argc, char **argv, struct buf *out,
		struct err *err)
{
	struct manifest manifest = { .kind = (enum manifest_kind)o->kind,
				     .name = o->name,
				     .name_space = o->name_space,
				     .image = o->image,
				     .runtime = o->runtime,
				     .gpus = (uint32_t)o->gpus,
				     .cpu = o->cpu,
				     .memory = o->memory,
				     .shm_bytes = o->shm_bytes };
	if (!o->image || !*o->image)
		return err_set(err, EINVAL,
			       "--image: which image do the pods run? Such as 'muster k8s "
			       "--image=registry/train:1 -- --nnodes=4 train.py'");
	if (o->gpus < 0 || o->gpus > RUN_NPROC_MAX)
		return err_set(err, EINVAL, "--gpus: it must be from 0 to %d", RUN_NPROC_MAX);
	int r = read_run(argc, argv, &manifest, err);
	return r < 0 ? r : manifest_write(&manifest, out, err);
}

static int k8s_main(const struct command *self, int argc, char **argv)
{
	struct k8s_options o = { .name = "muster",
				 .runtime = "torch-distributed",
				 .shm_bytes = SHM_DEFAULT };
	struct err err = ERR_INIT;
	AUTO(buf_done) struct buf out = BUF_INIT;
	int first, status;
	if (!command_parse(self, &o, argc, argv, NULL, &first, &status))
		return status;
	/* The word before the first one stands for the name of the command that they belong to. */
	if (make(&o, argc - first + 1, argv + first - 1, &out, &err) < 0)
		return command_usage_error(self, "%s", err.msg);
	return fd_write_all(STDOUT_FILENO, buf_data(&out), buf_len(&out)) < 0 ? EXIT_CODE_SYSTEM
									      : EXIT_CODE_OK;
}

const struct command command_k8s = {
	.name = "k8s",
	.synopsis = "[OPTIONS] -- [RUN-OPTIONS] SCRIPT|PROGRAM [ARGUMENTS...]",
	.summary = "print a manifest that runs a job on Kubernetes",
	.footer = "Examples:\n"
		  "  muster k8s --image=registry/train:1 -- --nnodes=4 train.py | kubectl apply -f "
		  "-\n"
		  "  muster k8s --kind=trainjob --image=registry/train:1 -- --nnodes=4 train.py\n",
	.opts = k8s_opts,
	.mode = OPT_STOP_AT_POSITIONAL,
	.main = k8s_main,
};
