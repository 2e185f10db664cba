/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that came without a descriptor. */
#include <errno.h>

#include "tools/tessera-sim/server.h"

struct remote *remote_create(struct link *link, uint64_t iova, uint64_t bytes,
			     bool writable, int *error)
{
	(void)link;
	(void)iova;
	(void)bytes;
	(void)writable;
	*error = ENOTSUP;
	return NULL;
}

void remote_destroy(struct remote *r)
{
	(void)r;
}

void *remote_base(struct remote *r)
{
	(void)r;
	return NULL;
}
