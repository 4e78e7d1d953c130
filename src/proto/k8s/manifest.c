#include "proto/k8s/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "core/worker/exit_code.h"
#include "proto/json_out.h"

/* Between the end of muster's own time and SIGKILL by Kubernetes. */
#define GRACE_EXTRA_S 15
#define MIB ((uint64_t)1 << 20)
#define FAILURES_PER_NODE 6
/* Of a pod that was killed, with and without its grace. */
#define CODE_KILLED 137
#define CODE_STOPPED 143

/* A line, indented by `depth` steps. */
static void line(struct buf *out, unsigned depth, const char *fmt, ...) PRINTF_LIKE(3, 4);

static void line(struct buf *out, unsigned depth, const char *fmt, ...)
{
	va_list args;
	buf_printf(out, "%*s", (int)(2 * depth), "");
	va_start(args, fmt);
	buf_vprintf(out, fmt, args);
	va_end(args);
	buf_append_char(out, '\n');
}

/* A JSON text is one of YAML, too: what YAML does not allow in it, json_out writes as a number. */
static void text_line(struct buf *out, unsigned depth, const char *before, const char *text)
{
	buf_printf(out, "%*s%s", (int)(2 * depth), "", before);
	struct json_out json = JSON_OUT(out);
	json_out_text(&json, NULL, text);
	buf_append_char(out, '\n');
}

/* In a command Kubernetes makes $ of $$, and of $(NAME) the value of that variable. */
static void argument_line(struct buf *out, unsigned depth, const char *argument)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	for (const char *c = argument; *c; c++) {
		if (*c == '$' && (c[1] == '$' || c[1] == '('))
			buf_append_char(&text, '$');
		buf_append_char(&text, *c);
	}
	text_line(out, depth, "- ", buf_str(&text));
}

/* Workers that leave together may take all of the notice before the stop begins. */
static uint64_t grace_s(const struct manifest *m)
{
	uint64_t takes_ns = ns_add(m->notice_ns, m->shutdown_ns);
	return ns_add(takes_ns, NS_PER_S - 1) / NS_PER_S + GRACE_EXTRA_S;
}

/* ---- the container ---- */

static void put_command(struct buf *out, unsigned depth, const struct manifest *m)
{
	line(out, depth, "command:");
	line(out, depth, "- muster");
	line(out, depth, "- run");
	if (m->kind != MANIFEST_TRAINJOB)
		line(out, depth, "- --http=0.0.0.0:%d", MANIFEST_HTTP_PORT);
	if (m->kind != MANIFEST_TRAINJOB && !m->own_exit_map)
		/* 137 of a pod is then its own death, not that of a worker: a hang, an OOM kill. */
		line(out, depth, "- --exit-map=%s,%d=%d", exit_rows[EXIT_REASON_BAD_NODE].name,
		     CODE_KILLED, EXIT_CODE_FAILED);
	for (char *const *arg = m->args; *arg; arg++)
		argument_line(out, depth, *arg);
}

static void put_env(struct buf *out, unsigned depth, const struct manifest *m)
{
	line(out, depth, "env:");
	line(out, depth, "- name: MUSTER_TOKEN");
	line(out, depth + 1, "valueFrom:");
	line(out, depth + 2, "secretKeyRef:");
	line(out, depth + 3, "name: \"%s-token\"", m->name);
	line(out, depth + 3, "key: token");
}

static void put_amounts(struct buf *out, unsigned depth, const struct manifest *m)
{
	if (m->cpu)
		text_line(out, depth, "cpu: ", m->cpu);
	if (m->memory)
		text_line(out, depth, "memory: ", m->memory);
	if (m->gpus)
		line(out, depth, "nvidia.com/gpu: %u", m->gpus);
}

static void put_resources(struct buf *out, unsigned depth, const char *key,
			  const struct manifest *m)
{
	if (!m->cpu && !m->memory && !m->gpus)
		return;
	line(out, depth, "%s:", key);
	line(out, depth + 1, "requests:");
	put_amounts(out, depth + 2, m);
	line(out, depth + 1, "limits:");
	put_amounts(out, depth + 2, m);
}

static void put_mounts(struct buf *out, unsigned depth)
{
	line(out, depth, "volumeMounts:");
	line(out, depth, "- name: shm");
	line(out, depth + 1, "mountPath: /dev/shm");
	line(out, depth, "- name: tmp");
	line(out, depth + 1, "mountPath: /tmp");
}

static void put_volumes(struct buf *out, unsigned depth, const struct manifest *m)
{
	line(out, depth, "volumes:");
	line(out, depth, "- name: shm");
	line(out, depth + 1, "emptyDir:");
	line(out, depth + 2, "medium: Memory");
	line(out, depth + 2, "sizeLimit: %" PRIu64 "Mi", m->shm_bytes / MIB);
	line(out, depth, "- name: tmp");
	line(out, depth + 1, "emptyDir: {}");
}

/* /livez answers while the pods wait for each other. There is no readiness probe: a pod must have
 * its name before it is ready. */
static void put_probe(struct buf *out, unsigned depth)
{
	line(out, depth, "livenessProbe:");
	line(out, depth + 1, "httpGet:");
	line(out, depth + 2, "path: /livez");
	line(out, depth + 2, "port: %d", MANIFEST_HTTP_PORT);
	line(out, depth + 1, "periodSeconds: 10");
	line(out, depth + 1, "timeoutSeconds: 5");
	line(out, depth + 1, "failureThreshold: 6");
}

static void put_container(struct buf *out, unsigned depth, const struct manifest *m)
{
	line(out, depth, "- name: muster");
	text_line(out, depth + 1, "image: ", m->image);
	put_command(out, depth + 1, m);
	put_env(out, depth + 1, m);
	line(out, depth + 1, "ports:");
	line(out, depth + 1, "- containerPort: %d", MANIFEST_PORT);
	line(out, depth + 1, "- containerPort: %d", MANIFEST_HTTP_PORT);
	put_probe(out, depth + 1);
	put_resources(out, depth + 1, "resources", m);
	line(out, depth + 1, "securityContext:");
	line(out, depth + 2, "allowPrivilegeEscalation: false");
	put_mounts(out, depth + 1);
}

/* ---- Job and JobSet ---- */

/* The fixed codes of the contract for which it gives this advice. */
static void put_codes(struct buf *out, enum exit_advice advice)
{
	const char *before = "";
	for (int i = 0; i < EXIT_REASON_COUNT; i++)
		if (exit_rows[i].advice == advice && exit_rows[i].code > 0) {
			buf_printf(out, "%s%d", before, exit_rows[i].code);
			before = ", ";
		}
}

static void put_exit_codes(struct buf *out, unsigned depth, const char *operator,
			   const char * values)
{
	line(out, depth, "onExitCodes:");
	line(out, depth + 1, "containerName: muster");
	line(out, depth + 1, "operator: %s", operator);
	line(out, depth + 1, "values: [%s]", values);
}

/* What ends muster in good order is the job's end, after the restarts that it allows. A pod that
 * was killed, or did not find the others, is replaced. */
static void put_failure_policy(struct buf *out, unsigned depth)
{
	AUTO(buf_done) struct buf again = BUF_INIT, retried = BUF_INIT;
	put_codes(&again, EXIT_ADVICE_AGAIN);
	put_codes(&retried, EXIT_ADVICE_RETRY);
	buf_printf(&retried, ", %d, %d", CODE_KILLED, CODE_STOPPED);
	line(out, depth, "podFailurePolicy:");
	line(out, depth + 1, "rules:");
	line(out, depth + 1, "- action: Ignore # evicted or preempted");
	line(out, depth + 2, "onPodConditions:");
	line(out, depth + 2, "- type: DisruptionTarget");
	line(out, depth + 3, "status: \"True\"");
	line(out, depth + 1, "- action: Ignore # a bad node, or saved and left: once more");
	put_exit_codes(out, depth + 2, "In", buf_str(&again));
	line(out, depth + 1, "- action: FailJob # the job failed; other pods are replaced");
	put_exit_codes(out, depth + 2, "NotIn", buf_str(&retried));
}

/* The first pod coordinates: when it is done, the job is, even if pods that were not needed have
 * not come, or still wait. */
static void put_success_policy(struct buf *out, unsigned depth)
{
	line(out, depth, "successPolicy:");
	line(out, depth + 1, "rules:");
	line(out, depth + 1, "- succeededIndexes: \"0\"");
}

static void put_job_spec(struct buf *out, unsigned depth, const struct manifest *m)
{
	line(out, depth, "completionMode: Indexed");
	line(out, depth, "completions: %u", m->nodes);
	line(out, depth, "parallelism: %u", m->nodes);
	line(out, depth, "backoffLimit: %" PRIu64, (uint64_t)m->nodes * FAILURES_PER_NODE);
	put_failure_policy(out, depth);
	if (m->elastic)
		put_success_policy(out, depth);
	line(out, depth, "template:");
	line(out, depth + 1, "spec:");
	line(out, depth + 2, "restartPolicy: Never");
	if (m->kind == MANIFEST_JOB)
		text_line(out, depth + 2, "subdomain: ", m->name);
	line(out, depth + 2, "terminationGracePeriodSeconds: %" PRIu64, grace_s(m));
	line(out, depth + 2, "containers:");
	put_container(out, depth + 2, m);
	put_volumes(out, depth + 2, m);
}

static void put_head(struct buf *out, const char *version, const char *kind,
		     const struct manifest *m)
{
	line(out, 0, "apiVersion: %s", version);
	line(out, 0, "kind: %s", kind);
	line(out, 0, "metadata:");
	text_line(out, 1, "name: ", m->name);
	if (m->name_space)
		text_line(out, 1, "namespace: ", m->name_space);
	line(out, 0, "spec:");
}

/* Pods need names before they are ready: they wait for each other. */
static void put_service(struct buf *out, const struct manifest *m)
{
	put_head(out, "v1", "Service", m);
	line(out, 1, "clusterIP: None");
	line(out, 1, "publishNotReadyAddresses: true");
	line(out, 1, "selector:");
	text_line(out, 2, "job-name: ", m->name);
	line(out, 1, "ports:");
	line(out, 1, "- name: muster");
	line(out, 2, "port: %d", MANIFEST_PORT);
	line(out, 0, "---");
}

static void put_job(struct buf *out, const struct manifest *m)
{
	put_service(out, m);
	put_head(out, "batch/v1", "Job", m);
	put_job_spec(out, 1, m);
}

/* JobSet makes the service itself. */
static void put_jobset(struct buf *out, const struct manifest *m)
{
	put_head(out, "jobset.x-k8s.io/v1alpha2", "JobSet", m);
	line(out, 1, "network:");
	line(out, 2, "enableDNSHostnames: true");
	line(out, 2, "publishNotReadyAddresses: true");
	line(out, 1, "failurePolicy:");
	line(out, 2, "maxRestarts: 0");
	line(out, 1, "replicatedJobs:");
	line(out, 1, "- name: node");
	line(out, 2, "replicas: 1");
	line(out, 2, "template:");
	line(out, 3, "spec:");
	put_job_spec(out, 4, m);
}

/* ---- TrainJob ---- */

/* The runtime has the pods; what is missing there is patched. */
static void put_patches(struct buf *out, const struct manifest *m)
{
	line(out, 1, "runtimePatches:");
	line(out, 1, "- manager: muster.k8s/manifest");
	line(out, 2, "trainingRuntimeSpec:");
	line(out, 3, "template:");
	line(out, 4, "spec:");
	line(out, 5, "replicatedJobs:");
	line(out, 5, "- name: node");
	line(out, 6, "template:");
	line(out, 7, "spec:");
	line(out, 8, "template:");
	line(out, 9, "spec:");
	line(out, 10, "terminationGracePeriodSeconds: %" PRIu64, grace_s(m));
	line(out, 10, "containers:");
	line(out, 10, "- name: node");
	put_mounts(out, 11);
	put_volumes(out, 10, m);
}

static void put_trainjob(struct buf *out, const struct manifest *m)
{
	put_head(out, "trainer.kubeflow.org/v1alpha1", "TrainJob", m);
	line(out, 1, "runtimeRef:");
	text_line(out, 2, "name: ", m->runtime);
	line(out, 1, "trainer:");
	line(out, 2, "numNodes: %u", m->nodes);
	text_line(out, 2, "image: ", m->image);
	put_command(out, 2, m);
	put_env(out, 2, m);
	put_resources(out, 2, "resourcesPerNode", m);
	put_patches(out, m);
}

/* ---- all ---- */

static bool is_label_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* A name that may be the first part of a host name. */
static int check_name(const char *what, const char *name, struct err *err)
{
	size_t len = strlen(name);
	bool good = len > 0 && len <= MANIFEST_NAME_MAX && name[0] >= 'a' && name[0] <= 'z' &&
		    is_label_char(name[len - 1]);
	for (size_t i = 0; i < len; i++)
		good = good && (is_label_char(name[i]) || name[i] == '-');
	if (good)
		return 0;
	return err_set(err, EINVAL,
		       "%s: '%.64s' is not a name for Kubernetes: up to %d of a-z, 0-9 and -, the "
		       "first a letter, the last not -",
		       what, name, MANIFEST_NAME_MAX);
}

static int check_text(const char *what, const char *text, struct err *err)
{
	if (!text || utf8_valid(text, strlen(text)))
		return 0;
	return err_set(err, EINVAL, "%s is not UTF-8, and cannot be written into a manifest", what);
}

static int check_texts(const struct manifest *m, struct err *err)
{
	int r;
	if ((r = check_text("--image", m->image, err)) < 0 ||
	    (r = check_text("--cpu", m->cpu, err)) < 0 ||
	    (r = check_text("--memory", m->memory, err)) < 0)
		return r;
	for (char *const *arg = m->args; r == 0 && *arg; arg++)
		r = check_text("an argument", *arg, err);
	return r;
}

int manifest_write(const struct manifest *m, struct buf *out, struct err *err)
{
	static void (*const writers[])(struct buf *, const struct manifest *) = {
		[MANIFEST_JOB] = put_job,
		[MANIFEST_JOBSET] = put_jobset,
		[MANIFEST_TRAINJOB] = put_trainjob,
	};
	static_assert(ARRAY_LEN(writers) == MANIFEST_KIND_COUNT, "every kind needs a writer");
	int r;
	if ((r = check_name("--name", m->name, err)) < 0 ||
	    (m->name_space && (r = check_name("--namespace", m->name_space, err)) < 0) ||
	    (r = check_name("--runtime", m->runtime, err)) < 0 || (r = check_texts(m, err)) < 0)
		return r;
	line(out, 0, "# The pods share a secret; make it once:");
	line(out, 0,
	     "#   kubectl create secret generic %s-token "
	     "--from-literal=token=\"$(head -c 32 /dev/urandom | base64)\"",
	     m->name);
	writers[m->kind](out, m);
	return 0;
}
