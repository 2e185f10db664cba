/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KMOD_H
#define KMOD_H
/*
 * Small wrappers of the driver's ioctls for its tests. Those that give an int leave
 * errno and do not judge; the others end the test if the call fails. One thread.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "hal/hw/desc.h"
#include "kernel-uapi/include/tessera_drm.h"

#define NODE "/dev/accel/accel0"
#define PAGE 4096ull
#define SECOND 1000000000ll
#define P(x) ((uint64_t)(uintptr_t)(x))

extern int fd;			/* the node that the wrappers use */
extern const char *test_name;
extern jmp_buf test_end;
extern unsigned n_failed;

/* Reports and leaves the test. */
__attribute__((noreturn, format(printf, 2, 3)))
void fail(int line, const char *format, ...);

#define CHECK(x) do { if (!(x)) fail(__LINE__, "%s (errno %d)", #x, errno); } while (0)
#define SAME(a, b) do { \
	uint64_t a_ = (uint64_t)(a), b_ = (uint64_t)(b); \
	if (a_ != b_) \
		fail(__LINE__, "%s is 0x%llx, not 0x%llx", #a, (unsigned long long)a_, \
		     (unsigned long long)b_); \
} while (0)
/* The call fails with that errno. */
#define REFUSES(call, e) do { \
	int r_ = (call), e_ = r_ ? errno : 0; \
	if (e_ != (e)) \
		fail(__LINE__, "%s: errno %d, not %d", #call, e_, (e)); \
} while (0)

int64_t now_ns(void);
int query(uint32_t type, uint32_t ctx, void *data, uint32_t *size);
void query_all(uint32_t type, uint32_t ctx, void *data, uint32_t size);
struct drm_tessera_ctx_create ctx_create(void);
/* With its wake page. */
struct drm_tessera_ctx_create ctx_create_wake(volatile uint32_t **page);
int ctx_destroy(uint32_t id);
struct drm_tessera_bo_create bo_create(uint64_t size, uint32_t flags, uint32_t ctx);
int bo_close(uint32_t handle);
uint64_t *map_at(uint64_t offset, uint64_t size);
int map(uint32_t ctx, uint32_t handle, uint64_t *va, uint32_t flags);
int map_op(uint32_t ctx, struct drm_tessera_map_op *op);
int unmap(uint32_t ctx, uint64_t va);
int trace_start(uint32_t ctx, uint64_t va, uint32_t n_records, uint64_t first, int event);
/* last: may be NULL. */
int trace_stop(uint32_t ctx, uint64_t *last);
/* As root, by debugfs: returns when the device is back. */
void reset_function(void);
/* 64 entries, priority 1; event: an eventfd or -1. */
struct drm_tessera_queue_create queue_create(uint32_t ctx, uint8_t cls, uint32_t flags,
					     int event);
int queue_call(unsigned long request, uint32_t id);
int submit_full(uint32_t queue, const struct hw_sqe *descs, uint32_t n,
		const struct drm_tessera_sync *in, uint32_t n_in,
		const struct drm_tessera_sync *out, uint32_t n_out, uint64_t *point);
uint64_t submit(uint32_t queue, const struct hw_sqe *descs, uint32_t n);
int wait_point(uint32_t syncobj, uint64_t point, int64_t ns);
uint32_t syncobj_create(void);
/* The errno that a binary syncobj's fence carries; 1: not signalled. */
int fence_errno(uint32_t syncobj);
/* Submits with a binary syncobj, waits, gives the fence's errno. */
int run(uint32_t queue, const struct hw_sqe *descs, uint32_t n);
struct hw_sqe fill(uint64_t va, uint64_t bytes, uint64_t pattern);
struct hw_sqe copy(uint64_t to, uint64_t from, uint64_t bytes);
/* A copy without end, as b's second half says. b is mapped in a context, and a page at least. */
struct hw_sqe endless(const struct drm_tessera_bo_create *b);
void write_file(const char *path, const char *text);
/* The part of a file from `word` on; "" if it is not there. Until the next call. */
const char *read_from(const char *path, const char *word);
/* Of a file in the device's folder of debugfs. */
void debug_path(char *out, size_t n, const char *name);
/* enum hw_inject */
void inject(unsigned kind, unsigned value);

/* A queue of the caller's, as the HAL will drive it. */
struct ring {
	struct drm_tessera_queue_create q;
	struct hw_sqe *sq;
	volatile struct hw_cqe *cq;
	volatile uint32_t *bell;
	uint32_t tail, head;
	int event;
};

void ring_open(struct ring *r, uint32_t ctx, uint8_t cls);
/* Writes a descriptor and stores the tail to the doorbell. */
void ring_put(struct ring *r, struct hw_sqe d);
/* The next completion; -1: none came in time. Sleeps on the eventfd. */
int ring_get(struct ring *r, struct hw_cqe *out, int64_t ns);
void ring_close(struct ring *r);

/* kmod_memory.c */
void the_device_clears_large_buffers(void);
void a_busy_engine_leaves_clearing_to_the_cpu(void);
void a_reset_while_memory_is_cleared_leaves_it_clear(void);
void stores_that_a_reset_swallows_are_made_again(void);
void a_bindings_table_may_lie_in_pieces(void);
void killing_who_waits_for_memory_leaves_nothing(void);

/* kmod_abi.c */
void the_driver_tells_its_version(void);
void many_mappings_are_one_call(void);
void records_may_be_of_other_sizes(void);

/* kmod_trace.c */
void what_a_context_runs_is_recorded(void);
void who_reads_a_trace_looks_once_a_second(void);
void bad_traces_are_refused(void);
void a_traces_memory_stays(void);
void a_reset_ends_traces(void);

/* kmod_client.c */
void a_client_is_reset_alone(void);
void a_reset_client_has_its_limits(void);
void only_root_resets_clients(void);

/* kmod_limits.c */
void a_file_has_only_so_many_of_each(void);
void a_device_that_is_used_up_says_so(void);
void a_file_has_only_so_much_hbm(void);
void a_cgroup_has_only_so_much_hbm(void);
void a_cgroup_outlives_its_cards_driver(void);
void memory_that_stays_counts_as_locked(void);

/* kmod_reset.c */
void a_lost_interrupt_is_made_up_for(void);
void a_queue_that_hangs_is_reset_alone(void);
void a_function_reset_ends_contexts_and_keeps_memory(void);
void a_fatal_device_comes_back(void);
void resets_follow_at_once(void);
void a_dump_that_does_not_fit_says_so(void);
void sleep_ends_contexts(void);
void sleep_finds_a_fatal_device(void);
void only_root_resets(void);
void a_killed_process_leaves_nothing(void);
void unplugging_under_an_open_file(void);
void dying_for_good(void);
void link_errors_end_contexts(void);
void link_errors_find_a_fatal_device(void);
void fatal_link_errors_reset_the_link(void);
void a_link_that_stays_down_is_given_up(void);
void a_link_that_is_given_up_wedges(void);

#endif
