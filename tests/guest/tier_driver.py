# SPDX-License-Identifier: Apache-2.0
"""The kernel driver, which brings a guest of its own: tests/kmod/guest.sh."""

import os
import pathlib
import re
import shutil
import tempfile

from guest import TOP, Failure, Skip, build_driver, run_or_fail, say


def tier_driver(machine, program="kmod_test", arguments="", limit=240):
    script = TOP / "tests/kmod/guest.sh"
    if not script.exists():
        raise Skip("this tree has no tests/kmod")
    machine.fetch("busybox", "qemu")
    work = pathlib.Path(tempfile.mkdtemp(prefix="tessera-vm-"))
    try:
        uapi = build_driver(machine, work)
        run_or_fail("building its test",
                    [*uapi, f"OUT={work}/test", f"{work}/test/{program}"])
        env = dict(os.environ, QEMU=" ".join(machine.qemu()), WORK=f"{work}/guest",
                   LIMIT=str(limit), TEST_ARGS=arguments,
                   KERNEL=str(machine.kernel()), MODULES=str(machine.modules()),
                   BUSYBOX=str(machine.one("busybox/usr/bin/busybox")),
                   SERVER=str(machine.build / "tessera-sim"))
        text = run_or_fail("the driver's guest",
                           ["sh", str(script), f"{work}/src/kernel-uapi/driver/tessera.ko",
                            f"{work}/test/{program}"], env=env)
        if machine.verbose:
            say(text)
        for line in re.findall(r"^# (?:.* calls,|.* processes killed:|not steady:).*", text, re.M):
            say(line.strip())
        if program == "kmod_fuzz":
            return 1
        passed = len(re.findall(r"^ok ", text, re.M))
        if not passed or re.search(r"^not ok", text, re.M):
            raise Failure(text)
        return passed
    finally:
        shutil.rmtree(work, ignore_errors=True)


def tier_kills(machine, what="1000", limit=400):
    """what: the arguments of kmod_kill."""
    return tier_driver(machine, "kmod_kill", what, limit)
