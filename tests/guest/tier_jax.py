# SPDX-License-Identifier: Apache-2.0
"""JAX trains in a guest, on the host's Python."""

import json
import os
import pathlib
import shutil
import tempfile

from guest import (LOAD_DRIVER, TOP, Failure, Skip, build_driver, copy_driver, run_guest,
                   run_or_fail, stock_modules)

SHARING = ("netfs", "9pnet", "9pnet_virtio", "9p")
DIGITS = TOP / "runtime/python/examples/digits.py"
MODEL = "conv_net"

# The host's file system, read only, with a /tmp of its own: its Python is the guest's.
JAX_SCRIPT = """
mkdir /host
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 host /host
mount -t tmpfs none /host/tmp
for d in proc sys dev; do mount --bind /$d /host/$d; done
train() {	# DEVICES
	echo "devices $1"
	chroot /host /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp JAX_PLATFORMS=tessera,cpu \\
		TESSERA_PLUGIN=@PLUGIN@ TESSERA_CACHE=off TESSERA_DEVICES=$1 \\
		@PYTHON@ @DIGITS@ --worker @MODEL@
}
for a in $(addresses 1234 7e55); do
	check bind tessera-vfio-bind $a
	check vfio train vfio:$a
	check unbind tessera-vfio-bind --unbind $a
done
@LOAD_DRIVER@
check node test -c /dev/accel/accel0
check driver train accel:/dev/accel/accel0
"""


def losses_of(lines):
    """Of a worker of digits.py, which prints JSON."""
    return [x for line in lines if line.startswith("{")
            for x in json.loads(line).get("losses", [])]


def tier_jax(machine):
    """JAX trains in a guest, through VFIO and through the driver, as it does on the host."""
    python = os.environ.get("TESSERA_VM_PYTHON", "")
    if not os.access(python, os.X_OK):
        raise Skip("TESSERA_VM_PYTHON names no Python with JAX: make check-vm-jax does")
    machine.fetch("busybox", "qemu", "kernel", "kbuild")
    plugin = machine.build / "pjrt_plugin_tessera.so"
    worker = [python, str(DIGITS), "--worker", MODEL]
    env = dict(os.environ, JAX_PLATFORMS="tessera,cpu", TESSERA_PLUGIN=str(plugin),
               TESSERA_CACHE="off", TESSERA_DEVICES="sim")
    want = losses_of(run_or_fail("training on the host", worker, env=env).splitlines())

    def inspect(text):
        for part in text.split("\ndevices ")[1:]:
            got = losses_of(part.splitlines())
            if not got or got != want:
                raise Failure(f"{part.split()[0]}: {len(got)} losses, the host has {len(want)}; "
                              f"the first: {got[:3]}, {want[:3]}\n{text}")

    script = JAX_SCRIPT
    for name, value in (("PLUGIN", plugin), ("PYTHON", python), ("DIGITS", DIGITS),
                        ("MODEL", MODEL), ("LOAD_DRIVER", LOAD_DRIVER)):
        script = script.replace(f"@{name}@", str(value))
    work = pathlib.Path(tempfile.mkdtemp(prefix="tessera-vm-"))
    try:
        build_driver(machine, work)

        modules = stock_modules(machine) | {m: machine.module(m) for m in SHARING}
        share = ["-fsdev", "local,id=host,path=/,security_model=none,readonly=on",
                 "-device", "virtio-9p-pci,fsdev=host,mount_tag=host"]
        return run_guest(machine, script, share, 1, 5, [], modules, 1500,
                         lambda root, m: copy_driver(root, m, work), "4G", inspect)
    finally:
        shutil.rmtree(work, ignore_errors=True)
