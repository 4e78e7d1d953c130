/* Environment variables whose values no page shows. */
#ifndef PROTO_DASH_SECRET_H
#define PROTO_DASH_SECRET_H

#include "base/util.h"

/* By the name before a '=': "AWS_SECRET_ACCESS_KEY=..." is one. */
bool secret_is_name(const char *assignment);

#endif
