/* The command line of muster-discover-etcd(1) for `--rdzv-backend=etcd`. */
#ifndef NODES_RENDEZVOUS_ETCD_H
#define NODES_RENDEZVOUS_ETCD_H

#include "base/strv.h"
#include "nodes/rendezvous_conf.h"

/* The program and its options, without run id and address; `endpoints` as typed. -EINVAL: a usage
 * error. */
int rendezvous_etcd_args(const char *endpoints, const struct rendezvous_conf *conf,
			 struct strv *ret_args, struct err *err);

/* The host of the first endpoint, for the route to etcd; "" if there is none. */
void rendezvous_etcd_host(const char *endpoints, char ret_host[ADDR_HOST_MAX]);

/* Logs options that have no effect without etcd. */
void rendezvous_etcd_unused(const struct rendezvous_conf *conf);

#endif
