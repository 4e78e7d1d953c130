/* Kubernetes: the pods of an Indexed Job are the nodes of a muster job; also those of a JobSet and
 * of Kubeflow's TrainJob, which are made of such Jobs.
 *
 * A pod knows its index, and its name ends in it: "train-3". The first pod, "train-0", coordinates;
 * its full name is made from our own, which kubelet writes into /etc/hosts if the pods have a
 * subdomain. How many pods there are is in no variable: --nnodes or PET_NNODES says it. TrainJob
 * sets PET_NNODES, PET_NODE_RANK and PET_MASTER_*, and then nothing is to be settled here. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/host/engine_private.h"

#define INDEX_VARIABLE "JOB_COMPLETION_INDEX"
#define INDEX_MAX 1000000
#define NAME_MAX_LEN 253 /* of DNS */
#define MASTER_PORT 29500
/* A name server remembers for up to 30 s that a name does not exist. The first pod gets its name
 * when it has an address; the others give it that long before they ask for it. */
#define LOOKUP_DELAY_NS (2 * NS_PER_S)

static bool kubernetes_is_here(char *const *environment)
{
	return env_find(environment, "KUBERNETES_SERVICE_HOST") ||
	       env_find(environment, INDEX_VARIABLE);
}

/* -1: there is none. */
static int read_index(char *const *environment, int64_t *ret_index, struct err *err)
{
	const char *text = env_find(environment, INDEX_VARIABLE);
	uint64_t index;
	*ret_index = -1;
	if (!text || !*text)
		return 0;
	if (str_to_u64(text, &index) < 0 || index > INDEX_MAX)
		return err_set(err, EINVAL,
			       "Kubernetes: " INDEX_VARIABLE
			       " is '%.64s', which is not a number up to %d",
			       text, INDEX_MAX);
	*ret_index = (int64_t)index;
	return 0;
}

/* "train" of the pod "train-3"; malloc'ed. */
static char *job_of(const char *pod, int64_t index)
{
	AUTO_FREE char *suffix = mem_printf("-%" PRId64, index);
	if (strlen(pod) <= strlen(suffix) || !str_ends(pod, suffix))
		return NULL;
	return mem_strndup(pod, strlen(pod) - strlen(suffix));
}

/* Whether a line of /etc/hosts has the full name of `pod`: "10.1.2.3 pod.sub.ns.svc.zone pod".
 * Returns what follows the name and its dot. */
static const char *domain_in(const char *line, size_t len, const char *pod, size_t *ret_len)
{
	const char *comment = memchr(line, '#', len);
	const char *at = line, *end = comment ? comment : line + len;
	size_t pod_len = strlen(pod);
	while (at < end) {
		while (at < end && strchr(" \t\r", *at))
			at++;
		const char *word = at;
		while (at < end && !strchr(" \t\r", *at))
			at++;
		size_t word_len = (size_t)(at - word);
		if (word > line && word_len > pod_len + 1 && word_len <= NAME_MAX_LEN &&
		    memcmp(word, pod, pod_len) == 0 && word[pod_len] == '.') {
			*ret_len = word_len - pod_len - 1;
			return word + pod_len + 1;
		}
	}
	return NULL;
}

/* The domain of the pods; NULL: they have none. */
static const char *find_domain(const char *hosts_file, const char *pod, size_t *ret_len)
{
	const char *rest = hosts_file, *line, *domain;
	size_t len;
	while ((line = str_split(&rest, '\n', &len)))
		if (!memchr(line, '\0', len) && (domain = domain_in(line, len, pod, ret_len)))
			return domain;
	return NULL;
}

/* With a dot at its end the name is complete: otherwise the resolver would first ask for it in each
 * domain of its search list. */
static char *first_pod(const char *job, const char *pod, const char *hosts_file)
{
	size_t len = 0;
	const char *domain = find_domain(hosts_file, pod, &len);
	if (!domain)
		return mem_printf("%s-0", job);
	while (len > 0 && domain[len - 1] == '.')
		len--;
	return mem_printf("%s-0.%.*s.", job, (int)len, domain);
}

static int settle_job(char *const *environment, const struct engine_asked *asked, int64_t index,
		      struct engine_settings *settings, struct err *err)
{
	const char *pod = env_find(environment, "HOSTNAME");
	if (index >= asked->max_nodes)
		return err_set(err, EINVAL,
			       "--nnodes: this is pod %" PRId64
			       " of a Job, and %u are the most that --nnodes allows: let it agree "
			       "with spec.completions",
			       index, asked->max_nodes);
	AUTO_FREE char *job = pod ? job_of(pod, index) : NULL;
	if (!job)
		return err_set(err, EINVAL,
			       "the name of this pod, '%.64s', does not end in its index %" PRId64
			       ", so that of the first pod is unknown: give --master-addr=NAME",
			       pod ? pod : "", index);
	settings->settles = true;
	settings->min_nodes = asked->min_nodes;
	settings->max_nodes = asked->max_nodes;
	settings->node_rank = index;
	settings->master_addr = first_pod(job, pod, asked->hosts_file ? asked->hosts_file : "");
	settings->master_port = MASTER_PORT;
	settings->run_id = mem_strdup(job);
	return 0;
}

static int kubernetes_settle(char *const *environment, const struct engine_asked *asked,
			     struct engine_settings *settings, struct err *err)
{
	int64_t index;
	int r = read_index(environment, &index, err);
	if (r < 0)
		return r;
	settings->more_cpus = "raise the CPU limit of the container";
	settings->more_shm = "mount an emptyDir with \"medium: Memory\" there";
	if (asked->node_rank > 0 || (asked->node_rank < 0 && index > 0))
		settings->lookup_delay_ns = LOOKUP_DELAY_NS;
	if (asked->rendezvous || index < 0 || engine_in_worker(environment))
		return 0;
	if (!asked->max_nodes) {
		settings->warning = mem_printf(
			"this is pod %" PRId64
			" of an Indexed Job, and a job of its own: --nnodes or PET_NNODES makes "
			"the pods one job, and --standalone says that each is meant to be one",
			index);
		return 0;
	}
	return asked->max_nodes > 1 ? settle_job(environment, asked, index, settings, err) : 0;
}

const struct engine engine_kubernetes = {
	.name = "kubernetes",
	.is_here = kubernetes_is_here,
	.settle = kubernetes_settle,
};
