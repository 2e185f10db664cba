# SPDX-License-Identifier: Apache-2.0
"""The kernel driver: its own tests, which bring a guest (tests/kmod/guest.sh), and xla-smi."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import tempfile

from guest import (LOAD_DRIVER, TOP, Failure, build_driver, copy_driver, run_guest,
                   run_or_fail, say)

# Two share the card. A client works, is stopped where it has memory, looked at from both sides,
# and killed.
SMI_SCRIPT = """
mount -t debugfs none /sys/kernel/debug
node=/sys/class/accel/accel0/device
""" + LOAD_DRIVER + """
check node test -c /dev/accel/accel0
check share share
check trace hal_trace_test accel:/dev/accel/accel0
smi() { echo "smi $1"; xla-smi --json; echo "table $1"; xla-smi; }
smi idle
TESSERA_DEVICES=accel:/dev/accel/accel0 conformance --busy 0 >/tmp/busy 2>&1 &
pid=$!
stop_with_memory() {
	for i in $(seq 200); do
		kill -STOP $pid || return 1
		! xla-smi proc --csv | grep -qE ',[1-9][0-9]*,[^,]*,page' || return 0
		kill -CONT $pid
		sleep 0.1
	done
	return 1
}
hbm() { cat /sys/kernel/debug/accel/$(basename $(readlink $node))/hbm; }
fact() { echo "fact $1 $2"; }
check client stop_with_memory
smi busy
echo "smi clients"; xla-smi proc --json; echo "table clients"
echo "facts"
fact pid $pid
fact driver $(basename $(readlink $node/driver))
fact device "$(dmesg | sed -n 's/.*\\[drm\\] \\(.*\\), serial.*/\\1/p' | tail -n 1)"
fact mib "$(dmesg | sed -n 's/.* \\([0-9]*\\) MiB of HBM.*/\\1/p' | tail -n 1)"
fact module_uses $(cat /sys/module/tessera/refcnt)
fact clients $(cat /proc/[0-9]*/fdinfo/* 2>/dev/null | grep '^drm-client-id' | sort -u | wc -l)
fact hbm "$(cat /proc/$pid/fdinfo/* | sed -n 's/^drm-total-hbm:[^0-9]*//p')"
# A second one works beside it, and its bytes stay the same while root ends what the first has.
TESSERA_DEVICES=accel:/dev/accel/accel0 conformance --busy 0 >/tmp/other 2>&1 &
other=$!
goes_on() {
	until=$(($(grep -c ^round /tmp/other) + 3))
	for i in $(seq 400); do
		[ "$(grep -c ^round /tmp/other)" -lt $until ] || return 0
		kill -0 $other || break
		sleep 0.1
	done
	cat /tmp/other
	return 1
}
resets() {	# STATUS OPTION...: as xla-smi says, which ends so
	want=$1
	shift
	xla-smi reset accel:accel0 --client $pid "$@"
	[ $? = $want ]
}
is_told() {
	kill -CONT $pid
	wait $pid
	[ $? = 1 ] && grep "ended this process's context" /tmp/busy || { cat /tmp/busy; false; }
}
check neighbour goes_on
check refused resets 4
check reset-client resets 0 --force
check told is_told
check undisturbed goes_on
kill -KILL $other
wait $other
check same-bytes [ $(grep ^round /tmp/other | cut -f 3 | sort -u | wc -l) = 1 ]
check no-function-reset [ -z "$(dmesg | grep 'back after a function reset')" ]
smi after
echo "facts"
fact left "$(hbm | grep -c ': used') $(cat /sys/module/tessera/refcnt)"
check unload rmmod tessera
"""


@contextlib.contextmanager
def driver_built(machine):
    """A folder with the module at src/, gone afterwards; the arguments of its make."""
    machine.fetch("busybox", "qemu")
    work = pathlib.Path(tempfile.mkdtemp(prefix="tessera-vm-"))
    try:
        yield work, build_driver(machine, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def module_of(work):
    return work / "src/kernel-uapi/driver/tessera.ko"


def drive(machine, work, uapi, program, arguments="", limit=240, for_kernel="", **more):
    """Runs one of tests/kmod; what its guest said. for_kernel: more of its command line; more:
    of guest.sh's environment."""
    run_or_fail("building its test", [*uapi, f"OUT={work}/test", f"{work}/test/{program}"])
    return boot_with(machine, work, work / "test" / program, arguments, limit, for_kernel, **more)


def boot_with(machine, work, program, arguments="", limit=240, for_kernel="", **more):
    """The same with a program that is built already."""
    env = dict(os.environ, QEMU=" ".join(machine.qemu()), WORK=f"{work}/guest",
               LIMIT=str(machine.patience(limit)), TEST_ARGS=arguments, CMDLINE=for_kernel,
               KERNEL=str(machine.kernel()), MODULES=str(machine.modules()),
               BUSYBOX=str(machine.one("busybox/usr/bin/busybox")),
               SERVER=str(machine.build / "tessera-sim"), **more)
    text = run_or_fail("the driver's guest", ["sh", str(TOP / "tests/kmod/guest.sh"),
                                              str(module_of(work)), str(program)],
                       env=env)
    if machine.verbose:
        say(text)
    for line in re.findall(r"^# (?:.* calls,|.* unbound,|.* attackers' rounds:|"
                           r".* processes killed:|.* submissions,|"
                           r"not steady:).*", text, re.M):
        say(line.strip())
    return text


def count_ok(text):
    passed = len(re.findall(r"^ok ", text, re.M))
    if not passed or re.search(r"^not ok", text, re.M):
        raise Failure(text)
    return passed


def expect(condition, what, text):
    if not condition:
        raise Failure(f"xla-smi: {what}\n{text}")


def judge_smi(text):
    """xla-smi's device and process are those that the kernel tells of."""
    said = {}
    for when in ("idle", "busy", "after"):
        part = text.partition(f"smi {when}\n")[2].partition(f"table {when}")[0]
        try:
            said[when] = json.loads(part)
        except ValueError as e:
            raise Failure(f"xla-smi: {when}: {e}\n{text}") from e
    fact = dict(re.findall(r"^fact (\w+) (.*)$", text, re.M))
    # A client has what it took of the device for its own.
    number, _, unit = fact.get("hbm", "").partition(" ")
    expect(number and unit in ("KiB", "MiB"), "no memory in the client's fdinfo", text)
    client_has = int(number) << {"KiB": 10, "MiB": 20}[unit]
    for when, facts in said.items():
        expect(len(facts["devices"]) == 1, f"{when}: {len(facts['devices'])} devices", text)
        d = facts["devices"][0]
        want = {"bus_id": "accel:accel0", "name": fact["device"], "driver": fact["driver"],
                "is_model": True, "state": "ready", "pid": None,
                "memory_total_bytes": int(fact["mib"]) << 20,
                "memory_used_bytes": client_has if when == "busy" else 0}
        got = {k: d[k] for k in want}
        expect(got == want, f"{when}: {got}, not {want}", text)
        if when != "busy":
            expect(not facts["processes"], f"{when}: {facts}", text)
    facts = said["busy"]
    expect(len(facts["processes"]) == 1, "not one process", text)
    p = facts["processes"][0]
    expect(p["pid"] == p["holder_pid"] == int(fact["pid"]) and p["command"] == "conformance" and
           p["devices"] == "accel:accel0", f"another process: {p}", text)
    expect(0 < p["memory_used_bytes"] <= client_has,
           f"{p['memory_used_bytes']} bytes are used of {client_has}", text)
    told = json.loads(text.partition("smi clients\n")[2].partition("table clients")[0])["clients"]
    expect(len(told) == 1 and told[0]["memory_held_bytes"] == client_has,
           f"the client is {told}, with {client_has} bytes", text)
    expect(fact["clients"] == fact["module_uses"] == "1", "more than one client", text)
    expect(fact["left"] == "0 0", f"left are blocks of HBM and files: {fact['left']}", text)


def read_by_smi(machine, work):
    return run_guest(machine, SMI_SCRIPT, [], 1, 12,
                     ["xla-smi", "conformance/conformance", "guest/share",
                      "tests/hal_trace_test"], {},
                     extra=lambda root, m: copy_driver(root, m, work), inspect=judge_smi)


def tier_driver(machine):
    with driver_built(machine) as (work, uapi):
        return count_ok(drive(machine, work, uapi, "kmod_test")) + read_by_smi(machine, work)


def tier_scattered(machine):
    """Without an IOMMU: what is not contiguous is in many pieces."""
    with driver_built(machine) as (work, uapi):
        return count_ok(drive(machine, work, uapi, "kmod_test", for_kernel="intel_iommu=off"))


def tier_tenants(machine, arguments="", limit=240):
    """Two devices, users without capabilities, and devices that lie."""
    with driver_built(machine) as (work, uapi):
        return count_ok(drive(machine, work, uapi, "kmod_tenants", arguments, limit,
                              "slub_debug=FZPU page_poison=1", DEVICES="2",
                              MODULE_ARGS="limit_ms=3000"))


def count_links(text):
    """Checks of conformance's area link that passed: copies cross, and nothing meets."""
    results = dict(re.findall(r"^link\t(\w+)\t(ok|FAIL|n\.a\.)\t", text, re.M))
    crossing = results.pop("copies_reach_the_other_device", "missing")
    if crossing != "ok" or not results or set(results.values()) != {"n.a."}:
        raise Failure(text)
    return 1


def tier_peers(machine, rounds=5, limit=300):
    """Two devices whose kernel knows a way between them: it trusts AMD's host bridges."""
    guest = {"CPU": "max,family=23", "DEVICES": "2"}
    with driver_built(machine) as (work, uapi):
        passed = sum(count_ok(drive(machine, work, uapi, "kmod_tenants", what, limit, line,
                                    TEST_ENV=f"PEER_ROUNDS={rounds}", **guest))
                     for what, line in (("peer", ""),
                                        ("peer_memory_is", "intel_iommu=off")))
        passed += count_ok(boot_with(machine, work, machine.build / "guest/peers", **guest))
        return passed + count_links(boot_with(
            machine, work, machine.build / "conformance/conformance", "--only link",
            TEST_ENV="TESSERA_DEVICES=accel:0,accel:1", **guest))


def tier_attack(machine, arguments="", limit=240):
    """Attackers on two devices beside a victim; arguments: seconds, its submissions."""
    with driver_built(machine) as (work, uapi):
        return count_ok(drive(machine, work, uapi, "kmod_attack", arguments, limit,
                              "slub_debug=FZPU page_poison=1", DEVICES="2",
                              MODULE_ARGS="limit_ms=100"))


def tier_checks(machine):
    """What a kernel's own checks say of all that."""
    return (tier_driver(machine) + tier_tenants(machine) + tier_kills(machine, limit=10800) +
            tier_stress(machine, "20 1 20 20"))


def tier_one(machine, test, **guest):
    """Tests of kmod_test that are named alone, in a guest of their own."""
    with driver_built(machine) as (work, uapi):
        return count_ok(drive(machine, work, uapi, "kmod_test", test, **guest))


def tier_cgroup(machine):
    """HBM is charged to cgroups, by a kernel that has the dmem controller."""
    return tier_one(machine, "cgroup")


def tier_bounced(machine):
    """A kernel that copies DMA through memory of its own: the driver must not bind."""
    with driver_built(machine) as (work, uapi):
        return count_ok(drive(machine, work, uapi, "kmod_tenants", "bounced",
                              for_kernel="intel_iommu=off swiotlb=force"))


def tier_link_errors(machine):
    """Errors on the PCI link, which the port above the device tells of."""
    return tier_one(machine, "link_errors", PORT="x-speed=5")


def tier_link_down(machine):
    """A port that says that its link does not come back, which QEMU's faster ones do."""
    return tier_one(machine, "a_link_that_stays_down", PORT="x-speed=16")


def tier_link_lost(machine):
    """The same port and a kernel that says that it has given the link up."""
    return tier_one(machine, "a_link_that_is_given_up", PORT="x-speed=16")


def tier_death(machine):
    """The device dies under work, and for good."""
    return tier_one(machine, "dying_for_good", KILL="1")


def tier_fuzz(machine):
    with driver_built(machine) as (work, uapi):
        drive(machine, work, uapi, "kmod_fuzz", "1000000", 7200)
        return 1


def tier_stress(machine, arguments="20 1 200 200", limit=2400):
    """Users that do everything, under 200 resets and as many unbindings; arguments: seconds, a
    seed, how many of each."""
    with driver_built(machine) as (work, uapi):
        drive(machine, work, uapi, "kmod_stress", arguments, limit)
        return 1


def tier_kills(machine, arguments="1000", limit=2700):
    """arguments: those of kmod_kill."""
    with driver_built(machine) as (work, uapi):
        return count_ok(drive(machine, work, uapi, "kmod_kill", arguments, limit))
