/* The command line of muster-discover-etcd. */
#ifndef LIBEXEC_ETCD_OPTIONS_H
#define LIBEXEC_ETCD_OPTIONS_H

#include "libexec/etcd_client.h"

struct etcd_options {
	struct etcd_client_config client;
	const char *prefix; /* of the key */
	uint64_t ttl_s;	    /* of the lease */
	bool fences;	    /* muster relies on the lease, and it is long enough for that */
	const char *run_id;
	const char *own; /* our host:port */
	char *password;	 /* owned */
};

#define ETCD_OPTIONS_INIT ((struct etcd_options){ .ttl_s = 0 })

/* -1: go on. Else the exit status; the message or help has been printed. */
int etcd_options_parse(int argc, char **argv, struct etcd_options *ret_options);
void etcd_options_done(struct etcd_options *options);

#endif
