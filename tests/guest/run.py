# SPDX-License-Identifier: Apache-2.0
"""Tests in a virtual machine: a guest kernel, QEMU without KVM, devices of ours and of QEMU's.

    python3 tests/guest/run.py --build build/opt [T1 T2 ...]

A tier is one kind of guest and the checks that run in it:

    T1  QEMU's edu, a device that we did not write, through the HAL's VFIO layer
    T2  one T1 and three, served by tessera-sim, through groups and type 1
    T3  the same through device files and iommufd, with modules built for it
    T4  the udev rules: who may open what, with a real udevd
    T5  the kernel driver on 6.12, as all guests that name no other kernel: every ioctl,
        two processes that share the card's memory, and xla-smi beside a client
    T5-7.2 the same on 7.2
    T5P the same with physical addresses: the IOMMU is off
    T5B a kernel that bounces DMA: the driver says so and does not bind
    AER errors on the PCI link, fatal ones and others: the driver ends what ran and goes on
    AER-7.2 a link that the kernel says it has given up: the driver wedges, and says so
    TENANTS users without capabilities on two devices, each wrong by itself, and devices that lie
    ATTACK all of that at once for a while, beside a victim whose work stays right
    T6  the conformance suite on all five ways to a device, as one table
    T7  a T1 without an IOMMU, by its name, with the same modules as T3
    KILLS a thousand processes that use the driver, killed anywhere: nothing is left of them
    PEERS HBM that another device reaches by itself, on 7.2, with and without an IOMMU

and on request only:

    KILLS-7.2 the same on 7.2
    AER-DOWN a link that the kernel cannot reset: the driver waits so long, then resets the device
    DEATH, DEATH-7.2 a device that is gone for good: its driver gives up, and says so
    LEAKS that KILLS would notice, one kind of leak after the other
    ATTACK-LONG the same for ten minutes and a hundred thousand of the victim's submissions
    DEBUG T5, TENANTS, KILLS, STRESS on a kernel with KASAN, lockdep, DMA-API debugging, debug
        objects, kmemleak and UBSAN, which is built from Debian's source first
    DEBUG-7.2 T5 on a 7.2 that is built the same way
    CGROUP on that, what memory of the card a cgroup has (dmem), which Debian's kernels do not count
    ATTACK-DEBUG what ATTACK-LONG does, on that kernel
    PEERS-LONG that of PEERS with 200 unbindings, 200 resets and 800 kills
    FUZZ a million random ioctls against the driver, of four processes at a time
    STRESS users that do everything, under 200 resets and 200 unbindings
    JAX a model trains in the guest, through VFIO and through the driver, with the same losses
        as on the host; JAX's profiler sees what runs through the driver
    JAX-TWO two train at a time on one card of the driver, each is killed beside another, and
        the losses are the host's
    BENCH what VFIO and the driver take, for tests/bench/transports.py

Packages come from Debian into TESSERA_VM_CACHE (fetch.sh); nothing of the system changes and
no root is needed. A tier that can't run says why and counts as skipped, never as passed; the
exit status is 1 if one failed, 77 if all were skipped.
"""

import argparse
import concurrent.futures
import os
import pathlib
import sys
import time

from guest import Failure, Machine, Skip, say
import tier_bare
import tier_bench
import tier_conformance
import tier_driver
import tier_jax
import tier_udev
import tier_vfio

# The longest first: at the end none is left to run alone.
TIERS = {
    "T6": tier_conformance.tier_conformance,
    "T7": tier_bare.tier_bare,
    "T3": tier_vfio.tier_iommufd,
    "T2": tier_vfio.tier_type1,
    "T5-7.2": lambda m: tier_driver.tier_driver(m.of_line("7.2")),
    "T5": tier_driver.tier_driver,
    "TENANTS": tier_driver.tier_tenants,
    "T5P": tier_driver.tier_scattered,
    "ATTACK": tier_driver.tier_attack,
    "KILLS": tier_driver.tier_kills,
    "PEERS": lambda m: tier_driver.tier_peers(m.of_line("7.2")),
    "AER": tier_driver.tier_link_errors,
    "T4": tier_udev.tier_udev,
    "AER-7.2": lambda m: tier_driver.tier_link_lost(m.of_line("7.2")),
    "T5B": tier_driver.tier_bounced,
    "T1": tier_vfio.tier_edu,
}
ON_REQUEST = {
    "KILLS-7.2": lambda m: tier_driver.tier_kills(m.of_line("7.2")),
    "AER-DOWN": tier_driver.tier_link_down,
    "DEATH": tier_driver.tier_death,
    "DEATH-7.2": lambda m: tier_driver.tier_death(m.of_line("7.2")),
    "LEAKS": lambda m: tier_driver.tier_kills(m, "1000 1 each", 9000),
    "ATTACK-LONG": lambda m: tier_driver.tier_attack(m, "600 100000", 3600),
    "DEBUG": lambda m: tier_driver.tier_checks(m.of_line("debug")),
    "DEBUG-7.2": lambda m: tier_driver.tier_driver(m.of_line("debug-7.2")),
    "CGROUP": lambda m: tier_driver.tier_cgroup(m.of_line("debug-7.2")),
    "ATTACK-DEBUG": lambda m: tier_driver.tier_attack(m.of_line("debug"), "600 100000", 3600),
    "PEERS-LONG": lambda m: tier_driver.tier_peers(m.of_line("7.2"), 200, 3600),
    "FUZZ": tier_driver.tier_fuzz,
    "STRESS": tier_driver.tier_stress,
    "JAX": tier_jax.tier_jax,
    "JAX-TWO": tier_jax.tier_two,
    "BENCH": tier_bench.tier_bench,
}


def run_tier(machine, name):
    """What became of it, after saying so."""
    began = time.monotonic()
    try:
        passed = (TIERS | ON_REQUEST)[name](machine)
    except Skip as why:
        say(f"skip {name}: {why}")
        return "skipped"
    except Failure as why:
        say(f"FAIL {name}: {why}")
        return "failed"
    say(f"ok   {name}: {passed} checks, {time.monotonic() - began:.0f} s")
    return "passed"


def main():
    parser = argparse.ArgumentParser(description="Tests in a virtual machine.")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--verbose", action="store_true", help="print what guests say")
    parser.add_argument("--jobs", type=int, default=2, metavar="N",
                        help="so many tiers at a time (2): guests wait more than they work")
    parser.add_argument("tier", nargs="*", choices=[[], *TIERS, *ON_REQUEST],
                        help="default: all")
    args = parser.parse_args()
    cache = pathlib.Path(os.environ.get("TESSERA_VM_CACHE", "build/vm")).absolute()
    cache.mkdir(parents=True, exist_ok=True)
    machine = Machine(cache, args.build.absolute(), args.verbose)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        ends = list(pool.map(lambda name: run_tier(machine, name), args.tier or TIERS))
    say("guest tiers: " + ", ".join(f"{ends.count(end)} {end}"
                                    for end in ("passed", "failed", "skipped")))
    return 1 if "failed" in ends else 0 if "passed" in ends else 77


if __name__ == "__main__":
    sys.exit(main())
