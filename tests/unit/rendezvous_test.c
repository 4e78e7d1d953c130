#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "run/config.h"

static struct rendezvous_options options;
static struct rendezvous rdzv;
static struct err err;

static void reset(void)
{
	options = run_options_default.rdzv;
	options.nnodes = "1:1";
}

static int make(uint32_t max_nodes)
{
	rendezvous_done(&rdzv);
	err = ERR_INIT;
	return rendezvous_make(&options, max_nodes, max_nodes, &rdzv, &err);
}

static void taken(uint32_t max_nodes)
{
	int r = make(max_nodes);
	ck_assert_msg(r == 0, "refused: %s", err.msg);
}

static void refused(uint32_t max_nodes, const char *message)
{
	ck_assert_int_eq(make(max_nodes), -EINVAL);
	ck_assert_str_eq(err.msg, message);
}

TEST(one_node_without_an_endpoint_needs_no_socket)
{
	reset();
	taken(1);
	ck_assert_int_eq(rdzv.kind, RENDEZVOUS_LOCAL);
	ck_assert_str_eq(rdzv.backend, "c10d");
	options.backend = "c10d";
	options.endpoint = "localhost:0";
	taken(1);
	ck_assert_int_eq(rdzv.kind, RENDEZVOUS_LOCAL);
	reset();
	options.master_port = 1234;
	taken(1);
	ck_assert_int_eq(rdzv.kind, RENDEZVOUS_LOCAL);
}

TEST(an_endpoint_alone_means_c10d_and_its_port)
{
	reset();
	options.endpoint = "node1, node2:77,[::1]";
	taken(4);
	ck_assert_int_eq(rdzv.kind, RENDEZVOUS_ENDPOINTS);
	ck_assert_str_eq(rdzv.backend, "c10d");
	ck_assert(!rdzv.is_static);
	ck_assert_uint_eq(rdzv.endpoint_count, 3);
	ck_assert_str_eq(rdzv.endpoints[0].host, "node1");
	ck_assert_uint_eq(rdzv.endpoints[0].port, 29400);
	ck_assert_str_eq(rdzv.endpoints[1].host, "node2");
	ck_assert_uint_eq(rdzv.endpoints[1].port, 77);
	ck_assert_str_eq(rdzv.endpoints[2].host, "::1");
	ck_assert_int_eq(rdzv.host, RENDEZVOUS_HOST_WHO_CAN);
	ck_assert_int_eq(rdzv.node_rank, -1);
	ck_assert_int_eq(rdzv.quorum, QUORUM_MAJORITY);
	options.endpoint = "node1";
	taken(4);
	ck_assert_int_eq(rdzv.quorum, QUORUM_ANY);
	taken(1);
	ck_assert_int_eq(rdzv.kind, RENDEZVOUS_ENDPOINTS);
}

TEST(a_master_or_a_node_rank_means_static)
{
	reset();
	options.node_rank = 1;
	taken(2);
	ck_assert(rdzv.is_static);
	ck_assert_str_eq(rdzv.endpoints[0].host, "127.0.0.1");
	ck_assert_uint_eq(rdzv.endpoints[0].port, 29500);
	ck_assert_int_eq(rdzv.host, RENDEZVOUS_HOST_NO);
	ck_assert_uint_eq(rdzv.join_timeout_ns, 900 * NS_PER_S);
	reset();
	options.master_addr = "node1";
	options.master_port = 1234;
	options.conf = "timeout=7";
	taken(2);
	ck_assert(rdzv.is_static);
	ck_assert_str_eq(rdzv.endpoints[0].host, "node1");
	ck_assert_uint_eq(rdzv.endpoints[0].port, 1234);
	ck_assert_int_eq(rdzv.host, RENDEZVOUS_HOST_YES);
	ck_assert_int_eq(rdzv.node_rank, 0);
	ck_assert_uint_eq(rdzv.join_timeout_ns, 7 * NS_PER_S);
	reset();
	options.backend = "static";
	options.endpoint = "node1:88";
	options.conf = "rank=1";
	taken(2);
	ck_assert(rdzv.is_static);
	ck_assert_uint_eq(rdzv.endpoints[0].port, 88);
	ck_assert_int_eq(rdzv.node_rank, 1);
}

TEST(what_cannot_work_is_refused_by_name)
{
	reset();
	refused(2, "--nnodes: '1:1': several nodes need --rdzv-endpoint=HOST, the same on all of "
		   "them, or "
		   "--master-addr=HOST and --node-rank=N");
	options.standalone = true;
	refused(2, "--standalone: there is one node, and --nnodes is '1:1'");
	reset();
	options.node_rank = 2;
	refused(2, "--node-rank: 2 must be below the number of nodes, which is 2");
	reset();
	options.endpoint = "node1:0";
	refused(2, "--rdzv-endpoint: 'node1:0': other nodes cannot find port 0");
	options.endpoint = "node1:x";
	refused(2, "--rdzv-endpoint: 'node1:x': the port must be a number from 0 to 65535");
	options.endpoint = "http://node1:29400";
	refused(2, "--rdzv-endpoint: 'http://node1:29400' is a URL; give a host and a port, as in "
		   "node1:29400");
	options.backend = "static";
	options.endpoint = "node1";
	refused(2, "--rdzv-endpoint: 'node1': static needs a port");
	options.endpoint = "node1:1,node2:1";
	refused(2, "--rdzv-endpoint: static has one endpoint");
	options.backend = "zeus";
	ck_assert_int_eq(make(2), -EINVAL);
}

TEST(a_lease_decides_where_less_than_a_majority_could_go_on)
{
	static const struct {
		uint32_t min, max;
		const char *conf;
		enum quorum_rule quorum;
	} cases[] = {
		{ 1, 2, "", QUORUM_LEASE },	    { 2, 4, "", QUORUM_LEASE },
		{ 2, 2, "", QUORUM_MAJORITY },	    { 2, 3, "", QUORUM_MAJORITY },
		{ 1, 2, "quorum=any", QUORUM_ANY }, { 1, 2, "quorum=majority", QUORUM_MAJORITY },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		reset();
		options.backend = "exec:program";
		options.conf = cases[i].conf;
		rendezvous_done(&rdzv);
		ck_assert_int_eq(rendezvous_make(&options, cases[i].min, cases[i].max, &rdzv, &err),
				 0);
		ck_assert_int_eq(rdzv.quorum, cases[i].quorum);
	}
}

static void assert_program(const char *const *args)
{
	const struct strv *program = &rdzv.program;
	ck_assert_int_eq(rdzv.kind, RENDEZVOUS_PROGRAM);
	ck_assert_int_eq(rdzv.quorum, QUORUM_MAJORITY);
	size_t count = 0;
	for (; args[count]; count++) {
		ck_assert_uint_lt(count + 1, program->count);
		ck_assert_str_eq(program->items[count + 1], args[count]);
	}
	ck_assert_uint_eq(program->count, count + 1);
}

TEST(etcd_becomes_the_command_line_of_its_program)
{
	reset();
	options.backend = "etcd";
	options.endpoint = "etcd1, etcd2:77";
	taken(3);
	assert_program((const char *const[]){ "--endpoints=etcd1,etcd2:77", "--", NULL });
	ck_assert(str_ends(rdzv.program.items[0], "muster-discover-etcd"));
	ck_assert_str_eq(rdzv.program_reaches, "etcd1");
	ck_assert_uint_eq(rdzv.join_timeout_ns, 900 * NS_PER_S);

	options.backend = "etcd-v2";
	options.endpoint = "http://a,b";
	options.conf = "protocol=https,ca_cert=ca,ssl_cert=c,ssl_cert_key=k,user=u,password_file=p,"
		       "etcd_prefix=/x,"
		       "lease_ttl=7,timeout=5";
	taken(3);
	assert_program((const char *const[]){
		"--endpoints=http://a,https://b", "--ca-file=ca", "--cert-file=c", "--key-file=k",
		"--user=u", "--password-file=p", "--prefix=/x", "--ttl=7", "--", NULL });
	ck_assert_str_eq(rdzv.program_reaches, "a");
	ck_assert_uint_eq(rdzv.join_timeout_ns, 5 * NS_PER_S);

	options.endpoint = "";
	options.conf = "cacert=ca,cert=c,key=k";
	taken(1);
	assert_program((const char *const[]){ "--endpoints=localhost", "--ca-file=ca",
					      "--cert-file=c", "--key-file=k", "--", NULL });
	ck_assert_str_eq(rdzv.program_reaches, "");
}

TEST(a_program_of_ones_own_gets_nothing_added)
{
	reset();
	options.backend = "exec:/some where/program";
	taken(3);
	assert_program((const char *const[]){ NULL });
	ck_assert_str_eq(rdzv.program.items[0], "/some where/program");
}

TEST(settings_have_torchruns_names_and_defaults)
{
	reset();
	options.endpoint = "a,b";
	taken(4);
	ck_assert_uint_eq(rdzv.join_timeout_ns, 600 * NS_PER_S);
	ck_assert_uint_eq(rdzv.last_call_ns, 30 * NS_PER_S);
	ck_assert_uint_eq(rdzv.close_timeout_ns, 30 * NS_PER_S);
	ck_assert_uint_eq(rdzv.scale_up_delay_ns, 5 * NS_PER_S);
	ck_assert_uint_eq(rdzv.failover_after_ns, 10 * NS_PER_S);
	ck_assert_uint_eq(rdzv.lease_periods, 4);
	ck_assert_uint_eq(rendezvous_period_ns(&rdzv, 4), NS_PER_S);
	ck_assert_uint_eq(rendezvous_period_ns(&rdzv, 10000), 5 * NS_PER_S);
	options.conf =
		" join_timeout = 5 ,last_call_timeout=1.5,close_timeout=2,keep_alive_interval=5,"
		"keep_alive_max_attempt=3,is_host=No,quorum=any,failover_after=1m,scale_up_delay=0,"
		"read_timeout=60,heartbeat_timeout=5,protocol=http,store_type=tcp,timeout=900,rank="
		"3";
	taken(4);
	ck_assert_uint_eq(rdzv.join_timeout_ns, 5 * NS_PER_S);
	ck_assert_uint_eq(rdzv.last_call_ns, 1500 * NS_PER_MS);
	ck_assert_uint_eq(rdzv.close_timeout_ns, 2 * NS_PER_S);
	ck_assert_uint_eq(rendezvous_period_ns(&rdzv, 4), 5 * NS_PER_S);
	ck_assert_uint_eq(rdzv.lease_periods, 2);
	ck_assert_int_eq(rdzv.host, RENDEZVOUS_HOST_NO);
	ck_assert_int_eq(rdzv.quorum, QUORUM_ANY);
	ck_assert_uint_eq(rdzv.failover_after_ns, 60 * NS_PER_S);
	ck_assert_uint_eq(rdzv.scale_up_delay_ns, 0);
	ck_assert_int_eq(rdzv.node_rank, 3);
}

TEST(bad_settings_are_refused_by_key)
{
	static const struct {
		const char *conf, *message;
	} bad[] = {
		{ "join_timeout", "--rdzv-conf: 'join_timeout' is not KEY=VALUE" },
		{ "join_timeout=", "--rdzv-conf: 'join_timeout=' is not KEY=VALUE" },
		{ "=1", "--rdzv-conf: '=1' is not KEY=VALUE" },
		{ "timeout=3,,", "--rdzv-conf: '' is not KEY=VALUE" },
		{ "join_timeout=0",
		  "--rdzv-conf: 'join_timeout=0' is not a time above 0, such as 30 or 1.5s" },
		{ "keep_alive_max_attempt=0",
		  "--rdzv-conf: 'keep_alive_max_attempt=0' is not a number from 1 on" },
		{ "is_host=perhaps", "--rdzv-conf: 'is_host=perhaps' is not true or false" },
		{ "quorum=none", "--rdzv-conf: 'quorum=none' is not majority or any" },
		{ "store_type=file",
		  "--rdzv-conf: 'store_type=file' is not tcp, which is the only store there is" },
	};
	reset();
	options.endpoint = "a";
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		options.conf = bad[i].conf;
		refused(2, bad[i].message);
	}
}

TEST(the_token_comes_from_a_file_or_the_environment_and_leaves_the_environment)
{
	reset();
	setenv(TOKEN_VARIABLE, "secret", 1);
	taken(1);
	ck_assert(rdzv.has_token);
	struct token inherited = rdzv.token;
	ck_assert_ptr_null(getenv(TOKEN_VARIABLE));
	taken(1);
	ck_assert(!rdzv.has_token);

	char path[] = "/tmp/muster-token-XXXXXX", conf[64];
	int fd = mkstemp(path);
	ck_assert_int_eq(write(fd, "from file\n", 10), 10);
	close(fd);
	snprintf(conf, sizeof(conf), "token_file=%s", path);
	options.conf = conf;
	setenv(TOKEN_VARIABLE, "secret", 1);
	taken(1);
	ck_assert(rdzv.has_token);
	ck_assert_int_ne(memcmp(&rdzv.token, &inherited, sizeof(inherited)), 0);
	ck_assert_ptr_null(getenv(TOKEN_VARIABLE));
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(make(1), -ENOENT);
}
