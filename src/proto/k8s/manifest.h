/* Manifests for Kubernetes: `muster run` as an Indexed Job, a JobSet or a TrainJob of Kubeflow. */
#ifndef PROTO_K8S_MANIFEST_H
#define PROTO_K8S_MANIFEST_H

#include "base/buf.h"
#include "base/err.h"

enum manifest_kind {
	MANIFEST_JOB,
	MANIFEST_JOBSET,
	MANIFEST_TRAINJOB,
	MANIFEST_KIND_COUNT,
};

#define MANIFEST_NAME_MAX 52 /* pods and services get names made from it, of at most 63 bytes */
#define MANIFEST_PORT 29500
#define MANIFEST_HTTP_PORT 8470

struct manifest {
	enum manifest_kind kind;
	const char *name;
	const char *name_space; /* NULL: the user's current one */
	const char *image;
	const char *runtime; /* of a TrainJob */
	uint32_t nodes;
	bool elastic;		  /* fewer will do */
	uint32_t gpus;		  /* per pod; 0: none */
	const char *cpu, *memory; /* per pod; NULL: not said */
	uint64_t shm_bytes;
	uint64_t notice_ns;   /* what workers have at most to save and leave together */
	uint64_t shutdown_ns; /* what muster run takes then, at most, to stop its workers */
	bool own_exit_map;    /* the user gives one */
	char *const *args;    /* of muster run: options, command, arguments */
};

/* Appends the manifest as YAML. -EINVAL: a name that Kubernetes does not allow, or a text that
 * is not UTF-8. Any other text is what the container gets. */
int manifest_write(const struct manifest *manifest, struct buf *out, struct err *err);

#endif
