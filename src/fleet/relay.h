/* The part of a job on many hosts that runs on each of them: it starts the agent, passes on what
 * comes from and goes to the hosts behind it, and ends all that when the starter is gone.
 *
 * Its standard input and output are the connection (proto/fleet/fleet_msg.h). It decides nothing.
 */
#ifndef FLEET_RELAY_H
#define FLEET_RELAY_H

#include "base/util.h"

/* The starter says something this often, and is gone when it has been silent for that long: the end
 * of a connection is not heard of when a machine loses its power. */
#define FLEET_BEAT_NS (5 * NS_PER_S)
#define FLEET_SILENCE_NS (30 * NS_PER_S)

/* `muster fleet-relay HOST`. Returns the exit code. */
int relay_main(int argc, char **argv);

#endif
