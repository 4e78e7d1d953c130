/* This process as a node of the job, from what the user asked for. */
#ifndef RUN_OWN_NODE_H
#define RUN_OWN_NODE_H

#include "core/node/node.h"
#include "run/config.h"

void own_node_configure(const struct run_config *config, struct node_config *ret_config);

#endif
