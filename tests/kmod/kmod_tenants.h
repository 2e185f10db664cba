/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KMOD_TENANTS_H
#define KMOD_TENANTS_H
/*
 * What the tests of tenants share: processes of users without capabilities, and two devices.
 * As in kmod.h what gives no error ends the test.
 */
#include <sys/types.h>

#include "tests/kmod/kmod.h"

#define OTHER_NODE "/dev/accel/accel1"

extern char pci[2][64];		/* addresses of the devices, "" where there is none */

/* Forks a process of user 1000 + n, which opens the node as fd, runs fn and ends with what
 * that gives. */
pid_t tenant(unsigned n, int (*fn)(void *arg), void *arg);
/* The child's exit status; -1: it did not end in time, and was killed. */
int end_of(pid_t child, int64_t ns);
/* Zeros that children see, too. */
void *shared(size_t bytes);
uint64_t function_resets(void);
/* Waits for a function reset that is on its way, until there were so many. */
void await_reset(uint64_t resets);
/* Fills pci. */
void find_devices(void);
/* No file of the device may be open: a node's number is its own until the last is closed. */
void bind_driver(unsigned device, bool on);
/* Until the node is there; then it is everybody's. */
void await_node(const char *node);

/* kmod_fair.c */
void fdinfo_answers_while_the_device_does_not(void);
void more_than_normal_priority_takes_a_capability(void);
void the_hog_is_stopped_and_nobody_waits_for_it(void);
void long_work_beside_others_goes_on(void);
void the_one_that_keeps_an_engine_is_reset(void);
void who_asks_to_wait_for_room_does(void);
void what_waits_is_bounded(void);
void no_fence_waits_for_memory(void);
void long_programs_keep_nobody_long(void);
void unbinding_waits_for_no_user(void);

/* kmod_peer.c: the first where devices have no way to each other, the others where they have. */
void hbm_without_a_way_is_refused(void);
void peer_memory_is_read_and_written(void);
void peer_memory_is_mapped_in_parts(void);
void peer_memory_goes_with_its_driver(void);
void peer_memory_comes_back_after_a_reset(void);
void peer_memory_comes_back_after_a_death(void);
void peers_that_are_killed_leave_nothing(void);
void peers_that_are_reset_together_come_back(void);

/* kmod_wake.c */
void a_wake_page_wakes_its_context_alone(void);
void wakes_too_many_harm_nobody(void);
void a_wake_page_ends_with_its_context(void);
void a_wake_page_ends_with_a_reset(void);
void a_wake_page_ends_with_its_driver(void);
void a_wake_page_is_never_a_strangers(void);
void a_wake_page_is_its_owners_alone(void);

#endif
