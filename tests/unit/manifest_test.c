#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "proto/k8s/manifest.h"

static char *args[] = { "--nnodes=4", "train.py", "--name", "a \"b\"\n", NULL };

static struct manifest manifest(enum manifest_kind kind)
{
	return (struct manifest){ .kind = kind,
				  .name = "train",
				  .image = "registry/train:1",
				  .runtime = "torch-distributed",
				  .nodes = 4,
				  .shm_bytes = (uint64_t)1 << 30,
				  .shutdown_ns = 30 * NS_PER_S,
				  .args = args };
}

static void has(const struct manifest *m, const char *text)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	struct err err = ERR_INIT;
	ck_assert_msg(manifest_write(m, &out, &err) == 0, "%s", err.msg);
	ck_assert_msg(strstr(buf_str(&out), text), "no %s in:\n%s", text, buf_str(&out));
}

TEST(the_grace_of_a_pod_is_longer_than_muster_takes_to_stop)
{
	for (int kind = 0; kind < MANIFEST_KIND_COUNT; kind++) {
		struct manifest m = manifest((enum manifest_kind)kind);
		has(&m, "terminationGracePeriodSeconds: 45\n");
		m.shutdown_ns = 90 * NS_PER_S + 1;
		has(&m, "terminationGracePeriodSeconds: 106\n");
		m.notice_ns = 300 * NS_PER_S;
		has(&m, "terminationGracePeriodSeconds: 406\n");
	}
}

TEST(an_elastic_job_ends_with_its_first_pod)
{
	struct manifest m = manifest(MANIFEST_JOB);
	m.elastic = true;
	has(&m, "succeededIndexes: \"0\"\n");
}

TEST(what_a_pod_ends_with_decides_by_the_contract_of_exit_codes)
{
	struct manifest m = manifest(MANIFEST_JOBSET);
	has(&m, "operator: In\n              values: [91, 94]\n");
	has(&m, "operator: NotIn\n              values: [124, 125, 137, 143]\n");
	has(&m, "- --exit-map=bad-node,137=1\n"); /* of a worker; that of a pod is its own */
}

TEST(arguments_are_quoted)
{
	struct manifest m = manifest(MANIFEST_JOB);
	has(&m, "- \"a \\\"b\\\"\\n\"\n");
}

TEST(names_and_arguments_that_kubernetes_refuses_are_refused)
{
	static const char *const names[] = {
		"",    "Train", "-a", "a-",
		"a.b", "a_b",	"1a", "a123456789012345678901234567890123456789012345678901x"
	};
	AUTO(buf_done) struct buf out = BUF_INIT;
	struct err err = ERR_INIT;
	struct manifest m = manifest(MANIFEST_JOB);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		m.name = names[i];
		ck_assert_int_eq(manifest_write(&m, &out, &err), -EINVAL);
	}
	m = manifest(MANIFEST_JOB);
	m.name_space = "No";
	ck_assert_int_eq(manifest_write(&m, &out, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "--namespace"));
	m = manifest(MANIFEST_JOB);
	char *odd[] = { "\xff", NULL };
	m.args = odd;
	ck_assert_int_eq(manifest_write(&m, &out, &err), -EINVAL);
	ck_assert_uint_eq(buf_len(&out), 0);
}
