#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/clock.h"
#include "core/host/engine.h"

static struct strv env;
static struct engine_asked asked;
static struct engine_settings settings;
static struct err err;

/* A step on three nodes as srun of Slurm 22.05 describes it, seen from its second node. */
static void be_step(void)
{
	strv_done(&env);
	asked = (struct engine_asked){ .node_rank = -1 };
	env_set(&env, "SLURM_JOB_ID", "71");
	env_set(&env, "SLURM_NODEID", "1");
	env_set(&env, "SLURM_NNODES", "3");
	env_set(&env, "SLURM_NODELIST", "node[1-9]"); /* the job's */
	env_set(&env, "SLURM_STEP_ID", "2");
	env_set(&env, "SLURM_STEP_NODELIST", "node[07-09]");
	env_set(&env, "SLURM_STEP_NUM_NODES", "3");
	env_set(&env, "SLURM_STEP_TASKS_PER_NODE", "1(x3)");
}

static int detect(void)
{
	engine_settings_done(&settings);
	err = ERR_INIT;
	return engine_detect(strv_argv(&env), &asked, &settings, &err);
}

static void detected(void)
{
	int r = detect();
	ck_assert_msg(r == 0, "refused: %s", err.msg);
	ck_assert(settings.engine || !engine_is_here(strv_argv(&env)));
}

static void refused(const char *message)
{
	ck_assert_int_eq(detect(), -EINVAL);
	ck_assert_str_eq(err.msg, message);
}

TEST(without_an_engine_nothing_is_settled)
{
	strv_done(&env);
	env_set(&env, "SLURM_NNODES", "3");
	detected();
	ck_assert_ptr_null(settings.engine);
	ck_assert(!settings.settles && !settings.signaller);
}

TEST(a_slurm_step_settles_size_endpoints_run_and_rank)
{
	be_step();
	detected();
	ck_assert_str_eq(settings.engine, "slurm");
	ck_assert(settings.settles && settings.signaller && settings.munge);
	ck_assert_uint_eq(settings.min_nodes, 3);
	ck_assert_uint_eq(settings.max_nodes, 3);
	ck_assert_int_eq(settings.node_rank, 1);
	ck_assert_str_eq(settings.run_id, "slurm-71.2.0");
	ck_assert_str_eq(settings.endpoint, "node07:16883,node08:16883,node09:16883");
}

TEST(a_requeued_job_is_another_run)
{
	be_step();
	env_set(&env, "SLURM_RESTART_COUNT", "4");
	detected();
	ck_assert_str_eq(settings.run_id, "slurm-71.2.4");
}

TEST(steps_and_neighbouring_jobs_get_different_ports)
{
	char first[64];
	be_step();
	detected();
	strcpy(first, strrchr(settings.endpoint, ':'));
	env_set(&env, "SLURM_STEP_ID", "3");
	detected();
	ck_assert_str_ne(first, strrchr(settings.endpoint, ':'));
	be_step();
	env_set(&env, "SLURM_JOB_ID", "72");
	detected();
	ck_assert_str_ne(first, strrchr(settings.endpoint, ':'));
	env_set(&env, "SLURM_JOB_ID", "4294967295");
	detected();
}

TEST(a_port_that_slurm_reserved_for_the_step_is_used)
{
	be_step();
	env_set(&env, "SLURM_STEP_RESV_PORTS", "12000-12003");
	detected();
	ck_assert_str_eq(settings.endpoint, "node07:12000,node08:12000,node09:12000");
}

TEST(a_step_of_one_node_needs_no_endpoint)
{
	be_step();
	env_set(&env, "SLURM_STEP_NODELIST", "node07");
	env_set(&env, "SLURM_STEP_NUM_NODES", "1");
	env_set(&env, "SLURM_STEP_TASKS_PER_NODE", "1");
	env_set(&env, "SLURM_NODEID", "0");
	detected();
	ck_assert(settings.settles);
	ck_assert_uint_eq(settings.max_nodes, 1);
	ck_assert_ptr_null(settings.endpoint);
}

TEST(a_batch_shell_is_not_a_step)
{
	be_step();
	env_unset(&env, "SLURM_STEP_ID");
	env_unset(&env, "SLURM_STEP_NODELIST");
	detected();
	ck_assert_str_eq(settings.engine, "slurm");
	ck_assert(!settings.settles && settings.signaller);
	be_step();
	env_set(&env, "SLURM_STEP_ID", "4294967290"); /* the shell of salloc */
	detected();
	ck_assert(!settings.settles);
}

TEST(a_worker_of_another_launcher_is_not_the_step)
{
	be_step();
	env_set(&env, "TORCHELASTIC_RUN_ID", "slurm-71.2.0");
	detected();
	ck_assert(!settings.settles);
}

TEST(what_the_user_gives_wins)
{
	be_step();
	asked.rendezvous = asked.alone = true;
	detected();
	ck_assert(!settings.settles && settings.signaller);

	asked = (struct engine_asked){ .min_nodes = 2, .max_nodes = 2, .node_rank = -1 };
	detected();
	ck_assert_uint_eq(settings.max_nodes, 2);
	ck_assert_int_eq(settings.node_rank, -1); /* one of three is a spare */

	asked = (struct engine_asked){ .min_nodes = 1, .max_nodes = 8 };
	detected();
	ck_assert_uint_eq(settings.min_nodes, 1);
	ck_assert_uint_eq(settings.max_nodes, 3);
	ck_assert_str_eq(settings.notice,
			 "--nnodes: the Slurm step has 3 nodes, so the job has at most 3");
}

TEST(an_endpoint_replaces_the_endpoints_and_nothing_else)
{
	be_step();
	asked.rendezvous = asked.place = true;
	detected();
	ck_assert(settings.settles && settings.munge);
	ck_assert_ptr_null(settings.endpoint);
	ck_assert_uint_eq(settings.min_nodes, 3);
	ck_assert_int_eq(settings.node_rank, 1);
	ck_assert_str_eq(settings.run_id, "slurm-71.2.0");
	asked.node_rank = 2;
	detected();
	ck_assert_int_eq(settings.node_rank, -1);			     /* the user's stays */
	asked = (struct engine_asked){ .node_rank = 0, .rendezvous = true }; /* no place */
	detected();
	ck_assert_ptr_nonnull(settings.endpoint);
}

TEST(a_job_with_an_endpoint_may_be_larger_than_the_step)
{
	be_step();
	asked = (struct engine_asked){
		.min_nodes = 4, .max_nodes = 4, .node_rank = -1, .rendezvous = true, .place = true
	};
	detected();
	ck_assert(!settings.settles && settings.munge);
	ck_assert_ptr_null(settings.run_id);
}

static void be_hidden(const char *stepd)
{
	strv_done(&env);
	asked = (struct engine_asked){ .node_rank = -1, .stepd = stepd };
}

TEST(a_step_without_its_variables_is_refused_unless_the_user_says_all)
{
	be_hidden("slurmstepd: [71.2]");
	ck_assert_int_eq(detect(), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "this is a step of Slurm ([71.2]), and"));
	env_set(&env, "SLURM_JOB_ID", "71");
	ck_assert_int_eq(detect(), -EINVAL);
	asked.max_nodes = 3;
	ck_assert_int_eq(detect(), -EINVAL);
	asked.place = true;
	detected();
	asked.place = false;
	asked.max_nodes = 1;
	detected();
	asked.max_nodes = 0;
	asked.alone = true;
	detected();
	asked.alone = false;
	env_set(&env, "TORCHELASTIC_RUN_ID", "slurm-71.2.0"); /* a worker's job is its own */
	detected();
}

TEST(a_batch_script_without_its_variables_is_alone)
{
	static const char *const lines[] = { "slurmstepd: [71.batch]",
					     "slurmstepd: [71.interactive]",
					     "slurmstepd: [71.extern]",
					     "slurmstepd",
					     "[71.]",
					     "[71.2",
					     NULL };
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		be_hidden(lines[i]);
		detected();
		ck_assert_ptr_null(settings.engine);
	}
	be_hidden("slurmstepd: [71+1.0]"); /* of a heterogeneous job */
	ck_assert_int_eq(detect(), -EINVAL);
}

TEST(a_step_that_cannot_work_is_refused_with_the_option_to_add)
{
	be_step();
	env_set(&env, "SLURM_STEP_TASKS_PER_NODE", "1,8(x2)");
	refused("Slurm starts 8 tasks on a node, and muster needs one, which starts the workers: "
		"add --ntasks-per-node=1 to srun, and --nproc-per-node=8 to muster run");
	be_step();
	asked = (struct engine_asked){ .min_nodes = 4, .max_nodes = 4 };
	refused("--nnodes: the Slurm step has 3 of at least 4 nodes: add -N4 to srun");
}

TEST(an_environment_that_contradicts_itself_is_refused)
{
	be_step();
	env_set(&env, "SLURM_STEP_NUM_NODES", "4");
	refused("Slurm: SLURM_STEP_NODELIST 'node[07-09]' has 3 nodes, and SLURM_STEP_NUM_NODES is "
		"4");
	be_step();
	env_set(&env, "SLURM_NODEID", "3");
	refused("Slurm: SLURM_NODEID is '3', which is not a number up to 2");
	be_step();
	env_set(&env, "SLURM_STEP_NODELIST", "node[3-1]");
	refused("Slurm: SLURM_STEP_NODELIST: '3-1': a range that ends before it begins");
}

/* The command for --slurm, with blanks between its words; or "error: ...". */
static const char *spread(void)
{
	static char text[512];
	AUTO(strv_done) struct strv command = STRV_INIT;
	*text = '\0';
	err = ERR_INIT;
	int r = engine_slurm_spread(strv_argv(&env), &command, &err);
	if (r < 0)
		snprintf(text, sizeof(text), "error: %s", err.msg);
	for (size_t i = 0; i < command.count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			 command.items[i]);
	ck_assert_int_eq(r > 0, command.count > 0);
	return text;
}

TEST(a_batch_script_is_spread_over_the_nodes_of_its_job_once)
{
	be_step();
	ck_assert_str_eq(spread(), "");
	env_unset(&env, "SLURM_STEP_ID");
	env_set(&env, "SLURM_JOB_NUM_NODES", "9");
	env_set(&env, "SLURM_CPUS_PER_TASK", "8");
	ck_assert_str_eq(spread(),
			 "srun --ntasks-per-node=1 --cpu-bind=none --no-kill "
			 "--kill-on-bad-exit=0 --wait=0 --unbuffered --nodes=9 --ntasks=9 "
			 "--cpus-per-task=8");
	env_unset(&env, "SLURM_JOB_ID");
	ck_assert_str_eq(spread(),
			 "error: --slurm: this is not a job of Slurm, SLURM_JOB_ID is not "
			 "set: submit a script with sbatch, or start a shell with salloc");
}

/* ---- Kubernetes ---- */

static const char hosts_file[] = "# Kubernetes-managed hosts file.\n"
				 "127.0.0.1\tlocalhost\n"
				 "10.244.1.5\ttrain-2.net.default.svc.cluster.local\ttrain-2\n";

/* The third pod of an Indexed Job with four, as kubelet describes it. */
static void be_pod(void)
{
	strv_done(&env);
	asked = (struct engine_asked){
		.min_nodes = 4, .max_nodes = 4, .node_rank = -1, .hosts_file = hosts_file
	};
	env_set(&env, "KUBERNETES_SERVICE_HOST", "10.96.0.1");
	env_set(&env, "HOSTNAME", "train-2");
	env_set(&env, "JOB_COMPLETION_INDEX", "2");
}

TEST(a_pod_of_an_indexed_job_finds_the_first_one)
{
	be_pod();
	detected();
	ck_assert_str_eq(settings.engine, "kubernetes");
	ck_assert(settings.settles);
	ck_assert_uint_eq(settings.min_nodes, 4);
	ck_assert_uint_eq(settings.max_nodes, 4);
	ck_assert_int_eq(settings.node_rank, 2);
	ck_assert_str_eq(settings.run_id, "train");
	ck_assert_str_eq(settings.master_addr, "train-0.net.default.svc.cluster.local.");
	ck_assert_uint_eq(settings.master_port, 29500);
	ck_assert_ptr_null(settings.endpoint);
	ck_assert_uint_gt(settings.lookup_delay_ns, 0);
}

TEST(the_first_pod_waits_for_no_name)
{
	be_pod();
	env_set(&env, "JOB_COMPLETION_INDEX", "0");
	env_set(&env, "HOSTNAME", "train-0");
	detected();
	ck_assert_int_eq(settings.node_rank, 0);
	ck_assert_uint_eq(settings.lookup_delay_ns, 0);
}

TEST(the_pods_of_a_jobset_have_longer_names)
{
	be_pod();
	env_set(&env, "HOSTNAME", "set-node-0-2");
	asked.hosts_file = "10.244.1.5 set-node-0-2.set.ns.svc.cluster.local set-node-0-2\n";
	detected();
	ck_assert_str_eq(settings.master_addr, "set-node-0-0.set.ns.svc.cluster.local.");
	ck_assert_str_eq(settings.run_id, "set-node-0");
}

TEST(without_a_subdomain_the_first_pods_bare_name_must_do)
{
	static const char *const files[] = { "", "10.0.0.2 train-2\n", "train-2.is.no.address\n",
					     "10.0.0.2 train-22.net # train-2.net\n" };
	be_pod();
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		asked.hosts_file = files[i];
		detected();
		ck_assert_str_eq(settings.master_addr, "train-0");
	}
	asked.hosts_file = NULL;
	detected();
	ck_assert_str_eq(settings.master_addr, "train-0");
}

TEST(a_trainjob_says_all_itself)
{
	be_pod();
	asked.rendezvous = true; /* PET_MASTER_ADDR and so on */
	asked.node_rank = 3;
	detected();
	ck_assert(!settings.settles);
	ck_assert_uint_gt(settings.lookup_delay_ns, 0);
	asked.node_rank = 0;
	detected();
	ck_assert_uint_eq(settings.lookup_delay_ns, 0);
}

TEST(a_pod_that_does_not_know_the_size_is_alone_and_says_so)
{
	be_pod();
	asked.min_nodes = asked.max_nodes = 0;
	detected();
	ck_assert(!settings.settles);
	ck_assert_ptr_nonnull(strstr(settings.warning, "this is pod 2 of an Indexed Job"));
	asked.rendezvous = true; /* --standalone */
	detected();
	ck_assert_ptr_null(settings.warning);
}

TEST(a_pod_without_an_index_is_left_alone)
{
	be_pod();
	env_unset(&env, "JOB_COMPLETION_INDEX");
	detected();
	ck_assert_str_eq(settings.engine, "kubernetes");
	ck_assert(!settings.settles);
	ck_assert_ptr_nonnull(settings.more_shm);
}

TEST(a_worker_in_a_pod_is_left_alone)
{
	be_pod();
	env_set(&env, "TORCHELASTIC_RUN_ID", "train");
	detected();
	ck_assert(!settings.settles);
}

TEST(what_a_pod_says_about_itself_must_fit_together)
{
	be_pod();
	env_set(&env, "JOB_COMPLETION_INDEX", "x");
	refused("Kubernetes: JOB_COMPLETION_INDEX is 'x', which is not a number up to 1000000");
	be_pod();
	asked.max_nodes = 2;
	refused("--nnodes: this is pod 2 of a Job, and 2 are the most that --nnodes allows: let it "
		"agree with spec.completions");
	be_pod();
	env_set(&env, "HOSTNAME", "worker-node-7");
	refused("the name of this pod, 'worker-node-7', does not end in its index 2, so that of "
		"the first pod is unknown: give --master-addr=NAME");
}

TEST(the_index_of_a_pod_has_a_limit)
{
	be_pod();
	env_set(&env, "JOB_COMPLETION_INDEX", "1000001");
	refused("Kubernetes: JOB_COMPLETION_INDEX is '1000001', which is not a number up to "
		"1000000");
}

TEST(all_pods_but_the_first_wait_for_its_name)
{
	be_pod();
	env_set(&env, "JOB_COMPLETION_INDEX", "1");
	env_set(&env, "HOSTNAME", "train-1");
	asked.hosts_file = "10.244.1.5 train-1.net... train-1\n";
	detected();
	ck_assert_uint_eq(settings.lookup_delay_ns, 2 * NS_PER_S);
	ck_assert_str_eq(settings.master_addr, "train-0.net.");
}
