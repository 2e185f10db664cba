/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's parameters, what one open file has taken against them, and arrays of callers.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "tessera_drv.h"

unsigned int tessera_limit_ms = 60000;
module_param_named(limit_ms, tessera_limit_ms, uint, 0444);
MODULE_PARM_DESC(limit_ms,
		 "the device stops work that runs longer; more takes CAP_SYS_NICE; 0: never");

unsigned int tessera_hang_ms = 120000;
module_param_named(hang_ms, tessera_hang_ms, uint, 0644);
MODULE_PARM_DESC(hang_ms,
		 "a queue whose work keeps others or itself for so long is reset; 0: never");

unsigned int tessera_program_mib = 16;
module_param_named(program_mib, tessera_program_mib, uint, 0644);
MODULE_PARM_DESC(program_mib, "the longest code of a program, in MiB: all wait while it loads");

static unsigned int file_limits[TESSERA_USES] = {
	[TESSERA_USE_CONTEXTS] = 16, [TESSERA_USE_QUEUES] = 32,
	[TESSERA_USE_PROGRAMS] = 16384, [TESSERA_USE_PENDING] = 262144,
};
module_param_named(file_contexts, file_limits[TESSERA_USE_CONTEXTS], uint, 0644);
MODULE_PARM_DESC(file_contexts, "how many contexts an open file may have; 0: all");
module_param_named(file_queues, file_limits[TESSERA_USE_QUEUES], uint, 0644);
MODULE_PARM_DESC(file_queues, "how many queues an open file may have; 0: all");
module_param_named(file_programs, file_limits[TESSERA_USE_PROGRAMS], uint, 0644);
MODULE_PARM_DESC(file_programs, "how many programs an open file may have; 0: all");
module_param_named(file_hbm_mib, file_limits[TESSERA_USE_HBM], uint, 0644);
MODULE_PARM_DESC(file_hbm_mib, "how much HBM an open file may have, in MiB; 0: all");

module_param_named(file_pending, file_limits[TESSERA_USE_PENDING], uint, 0644);
MODULE_PARM_DESC(file_pending,
		 "how many descriptors may be submitted and not done, at least 4096; 0: all");

u64 tessera_use_limit(enum tessera_use what)
{
	u64 limit = READ_ONCE(file_limits[what]);

	/* One submission always fits. */
	if (what == TESSERA_USE_PENDING && limit)
		limit = max(limit, 4096);
	return what == TESSERA_USE_HBM ? limit << 20 : limit;
}

int tessera_use(struct tessera_usage *u, enum tessera_use what, u64 n)
{
	u64 limit = tessera_use_limit(what);
	s64 has = atomic64_read(&u->n[what]);

	/* Never more than there may be, not even for a moment: what is refused to one thread must
	 * be in the way of no other's, nor have it wait for room that is there. */
	do {
		if (limit && (n > limit || (u64)has > limit - n))
			return -EMFILE;
	} while (!atomic64_try_cmpxchg(&u->n[what], &has, has + n));
	return 0;
}

void tessera_unuse(struct tessera_usage *u, enum tessera_use what, u64 n)
{
	atomic64_sub(n, &u->n[what]);
}

static void usage_free(struct kref *ref)
{
	kfree(container_of(ref, struct tessera_usage, ref));
}

void tessera_usage_put(struct tessera_usage *u)
{
	kref_put(&u->ref, usage_free);
}

int tessera_copy_records(void *out, size_t bytes, u64 user, u32 user_bytes, u32 n)
{
	u32 i;
	int ret;

	if (!n)
		return 0;
	if (user_bytes < 8 || user_bytes > TESSERA_RECORD_MAX || user_bytes % 8)
		return -EINVAL;
	for (i = 0; i < n; i++, user += user_bytes) {
		ret = copy_struct_from_user(out + i * bytes, bytes, u64_to_user_ptr(user),
					    user_bytes);
		if (ret)
			return ret;
	}
	return 0;
}
