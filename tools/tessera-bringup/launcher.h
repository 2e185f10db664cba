/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESSERA_BRINGUP_LAUNCHER_H
#define TESSERA_BRINGUP_LAUNCHER_H
/*
 * The entry of tessera-bringup.desktop in a desktop's launcher, through libunity, which is loaded
 * if it is there: nothing links or needs it.
 */
struct launcher;

/*
 * NULL: no session bus is named (DBUS_SESSION_BUS_ADDRESS), or no memory; all that follows takes
 * that. Where there is no libunity, or the bus does not answer, nothing happens. A thread of its
 * own talks to the bus, so nobody waits for that.
 */
struct launcher *launcher_open(void);
/* How far it is, from 0 to 1. */
void launcher_progress(struct launcher *l, double done);
void launcher_urgent(struct launcher *l);
/* Sends what is left, for which it waits 2 s at most. The progress is no longer shown; what is
 * urgent stays so. */
void launcher_close(struct launcher *l);

#endif
