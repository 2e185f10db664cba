# SPDX-License-Identifier: Apache-2.0
"""What VFIO (type 1, iommufd) and the kernel driver take in a guest.

Leaves what transport_bench prints as BUILD/bench/guest-WAY.tsv, for
tests/bench/transports.py. Times decide nothing here: only what the program checks does.
"""

from guest import (LOAD_DRIVER, Failure, copy_driver, iommufd_modules, run_guest,
                   stock_modules)
from tier_driver import driver_built

MS = 300     # of one figure
PROGRAM = "bench/transport_bench"

BY_VFIO = """
first=$(addresses 1234 7e55)
check bind tessera-vfio-bind $first
check WAY env TESSERA_DEVICES=vfio:$first transport_bench MS
""".replace("MS", str(MS))

BY_DRIVER = """
check unbind tessera-vfio-bind --unbind $first
""" + LOAD_DRIVER + """
check node test -c /dev/accel/accel0
check accel env TESSERA_DEVICES=accel:/dev/accel/accel0 transport_bench MS
""".replace("MS", str(MS))


def keep(machine, ways):
    """What to do with the guest's text: a file for each way."""
    def inspect(text):
        for way in ways:
            lines = text.partition(f"\nbegin {way}\n")[2].partition(f"\nok {way}\n")[0]
            if not lines.startswith("device\t"):
                raise Failure(f"{way} printed no figures:\n{lines}")
            (machine.build / f"bench/guest-{way}.tsv").write_text(lines + "\n")
    return inspect


def tier_bench(machine):
    machine.fetch("busybox", "qemu", "kernel", "kbuild")
    for old in (machine.build / "bench").glob("guest-*.tsv"):
        old.unlink()
    with driver_built(machine) as (work, _):
        passed = run_guest(machine, BY_VFIO.replace("WAY", "type1") + BY_DRIVER, [], 1, 5,
                           [PROGRAM], stock_modules(machine), 1500,
                           lambda root, m: copy_driver(root, m, work), "2G",
                           keep(machine, ["type1", "accel"]))
    return passed + run_guest(machine, BY_VFIO.replace("WAY", "iommufd"), [], 1, 2, [PROGRAM],
                              iommufd_modules(machine), 1500, None, "2G",
                              keep(machine, ["iommufd"]))
