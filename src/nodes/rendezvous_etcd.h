/* What `--rdzv-backend=etcd` says to muster-discover-etcd(1): its command line. */
#ifndef NODES_RENDEZVOUS_ETCD_H
#define NODES_RENDEZVOUS_ETCD_H

#include "base/strv.h"
#include "nodes/rendezvous_conf.h"

/* The program and its options, without run id and address; `endpoints` as typed. -EINVAL: a usage
 * error. */
int rendezvous_etcd_args(const char *endpoints, const struct rendezvous_conf *conf,
			 struct strv *ret_args, struct err *err);

/* The host of the first endpoint, to which the way to etcd leads; "" if there is none. */
void rendezvous_etcd_host(const char *endpoints, char ret_host[ADDR_HOST_MAX]);

/* Mentions what was given and has no effect without etcd. */
void rendezvous_etcd_unused(const struct rendezvous_conf *conf);

#endif
