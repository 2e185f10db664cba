# SPDX-License-Identifier: Apache-2.0
"""The conformance suite on all five ways to a device, as one table.

The model in the process and behind a socket run on the host. One guest has VFIO's groups
and then the kernel driver, another device files and iommufd; each on two devices of
tessera-sim. What the suite says there goes to tests/conformance/run.py, which judges all
columns alike.
"""

import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import guest
from guest import TOP, Failure, say

HOST = "sim,vfio-user"
# What a column must have said of the way that it went.
BY = {"vfio-type1": "by group and type 1", "vfio-iommufd": "by device file and iommufd"}
# Checks that do not fit a way; any other that says so hides something.
OWN_HBM = "a_new_client_sees_nothing_of_the_last"
ALONE = "open_is_exclusive_between_processes"
# Through the driver nothing meets, and on this guest's kernel no copy reaches the other card:
# tier PEERS has one on which it does.
LINKED = ("copies_reach_the_other_device", "copies_between_devices_go_by_links",
          "programs_meet_on_two_devices", "a_device_that_fails_fails_those_that_wait_for_it",
          "a_dead_link_costs_those_it_joined")
# Queue 0 is the driver's.
SILENT = "a_request_without_answer_costs_one_device"
NOT_APPLICABLE = {("sim", OWN_HBM), ("sim", ALONE), ("vfio-type1", OWN_HBM),
                  ("vfio-iommufd", OWN_HBM), ("accel", ALONE), ("accel", SILENT),
                  *(("accel", check) for check in LINKED)}
PROGRAM = "conformance/conformance"
N_DEVICES = 2
HBM = "64M"
LIMIT_S = 900

SUITE = """
t1=$(addresses 1234 7e55)
devices() {	# KIND NAME...: as TESSERA_DEVICES has it
	kind=$1 list=
	shift
	for name; do list=$list,$kind:$name; done
	echo ${list#,}
}
suite() {	# COLUMN DEVICES
	TESSERA_LOG=info TESSERA_DEVICES=$2 conformance >/tmp/results 2>/tmp/errors
	status=$?
	echo "results $1"
	cat /tmp/results
	echo "exit $status"
	cat /tmp/errors
	echo "end of results"
}
"""

TYPE1_AND_DRIVER = SUITE + """
for a in $t1; do check bind-$a tessera-vfio-bind $a; done
suite vfio-type1 $(devices vfio $t1)
for a in $t1; do check unbind-$a tessera-vfio-bind --unbind $a; done
""" + guest.LOAD_DRIVER + """
check nodes test -c /dev/accel/accel0 -a -c /dev/accel/accel1
mount -t debugfs none /sys/kernel/debug
suite accel $(devices accel 0 1)
"""

IOMMUFD = SUITE + """
for a in $t1; do check bind-$a tessera-vfio-bind $a; done
suite vfio-iommufd $(devices vfio $t1)
"""


def save_columns(text, wanted, folder):
    """What the suite said in a guest: [NAME=FILE]."""
    found = dict(re.findall(r"^results (\S+)\n(.*?)^end of results$", text, re.M | re.S))
    for name in wanted:
        if name not in found:
            raise Failure(f"{name}: the guest ran no suite\n{text}")
        if name in BY and BY[name] not in found[name]:
            raise Failure(f"{name} did not go {BY[name]}:\n{found[name]}")
        (folder / name).write_text(found[name])
    return [f"{name}={folder / name}" for name in wanted]


def judge_table(machine, columns):
    """Runs the host's columns, prints all; how many checks there are."""
    done = subprocess.run(
        [sys.executable, str(TOP / "tests/conformance/run.py"), str(machine.build / PROGRAM),
         "--server", str(machine.build / "tessera-sim"), "--ways", HOST,
         *(word for c in columns for word in ("--results", c))],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    say(done.stdout.rstrip())
    count = re.search(r"^conformance: (\d+) checks on 5 ways .*: all agree$", done.stdout, re.M)
    if done.returncode or not count:
        raise Failure("the table above has a column that is not as it should be")
    left_out = set(re.findall(r"^(\S+): n\.a\. (\w+):", done.stdout, re.M))
    if left_out != NOT_APPLICABLE:
        raise Failure(f"n.a. that nobody expects: {left_out - NOT_APPLICABLE or 'none'}; "
                      f"expected and not there: {NOT_APPLICABLE - left_out or 'none'}")
    return int(count[1])


def tier_conformance(machine):
    machine.fetch("busybox", "qemu", "kernel", "kbuild")
    iommufd = guest.iommufd_modules(machine)
    work = pathlib.Path(tempfile.mkdtemp(prefix="tessera-vm-"))

    def boot(script, n_checks, modules, wanted, extra=None):
        columns = []
        passed = guest.run_guest(
            machine, script, [], N_DEVICES, n_checks, [PROGRAM], modules, LIMIT_S, extra,
            hbm=HBM, inspect=lambda text: columns.extend(save_columns(text, wanted, work)))
        return passed, columns

    try:
        guest.build_driver(machine, work)
        # Together: both wait most of the time, for resets.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            one = pool.submit(boot, TYPE1_AND_DRIVER, 2 * N_DEVICES + 1,
                              guest.stock_modules(machine), ["vfio-type1", "accel"],
                              lambda root, m: guest.copy_driver(root, m, work))
            two = pool.submit(boot, IOMMUFD, N_DEVICES, iommufd, ["vfio-iommufd"])
            (passed, (type1, accel)), (more, (cdev,)) = one.result(), two.result()
        return passed + more + judge_table(machine, [type1, cdev, accel])
    finally:
        shutil.rmtree(work, ignore_errors=True)
