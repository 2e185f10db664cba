# SPDX-License-Identifier: Apache-2.0
"""The udev rules: who may open what, with a real udevd."""

import pathlib
import re
import shutil
import subprocess
import tempfile

import guest

UDEV_SCRIPT = """
printf 'root:x:0:\\nrender:x:105:\\n' >/etc/group
echo root:x:0:0::/:/bin/sh >/etc/passwd
mkdir -p /run /lib/udev
udev() { /udev/ld.so --library-path /udev --argv0 "$@"; }
check verify udev udevadm /udev/udevadm verify --resolve-names=never /etc/udev/rules.d
check daemon udev systemd-udevd /udev/udevadm --daemon
for a in $(addresses 1234 7e55) $(addresses 1234 11e8); do
	check bind-$a tessera-vfio-bind $a
done
udev udevadm /udev/udevadm trigger --action=add
check settle udev udevadm /udev/udevadm settle --timeout=60
group() {
	g=$(readlink /sys/bus/pci/devices/$1/iommu_group)
	echo /dev/vfio/${g##*/}
}
cdev() { for d in /sys/bus/pci/devices/$1/vfio-dev/*; do echo /dev/vfio/devices/${d##*/}; done; }
is() {	# FILE MODE:GROUP
	ls -l $1
	[ "$(stat -c %a:%g $1)" = $2 ]
}
t1=$(addresses 1234 7e55) edu=$(addresses 1234 11e8)
check our-group is $(group $t1) 660:105
check our-file is $(cdev $t1) 660:105
check iommu is /dev/iommu 660:105
check other-group is $(group $edu) 600:0
check other-file is $(cdev $edu) 600:0
check link sh -c 'ls -l /dev/vfio/by-path && [ /dev/vfio/by-path/* -ef '$(cdev $t1)' ]'
"""


ACCEL_SCRIPT = """
printf 'root:x:0:\\nrender:x:105:\\n' >/etc/group
echo root:x:0:0::/:/bin/sh >/etc/passwd
mkdir -p /run /lib/udev
udev() { /udev/ld.so --library-path /udev --argv0 "$@"; }
check daemon udev systemd-udevd /udev/udevadm --daemon
for m in /modules/late/*.ko; do insmod $m || echo "FAILED insmod $m"; done
check settle udev udevadm /udev/udevadm settle --timeout=60
leads() {	# LINK NODE
	ls -l $1
	[ "$(readlink -f $1)" = $2 ]
}
ls -lR /dev/accel
for n in 0 1; do
	check mode-$n test "$(stat -c %a:%g /dev/accel/accel$n)" = 660:105
	serial=$(cat /sys/class/accel/accel$n/device/serial)
	check by-id-$n leads /dev/accel/by-id/tessera-$serial /dev/accel/accel$n
	check by-path-$n leads "/dev/accel/by-path/pci-$(
		basename $(readlink -f /sys/class/accel/accel$n/device))" /dev/accel/accel$n
done
check serials test "$(ls /dev/accel/by-id)" = "tessera-SIM00000
tessera-SIM00001"
rmmod tessera
udev udevadm /udev/udevadm settle --timeout=60
check gone test -z "$(ls /dev/accel/by-id /dev/accel/by-path 2>/dev/null | grep tessera)"
"""


def copy_udev(root, machine):
    """udevd with libraries of its own: it may be newer than the system's."""
    libs = machine.cache / "udev/usr/lib/x86_64-linux-gnu"
    loader = machine.cache / "udev/usr/lib64/ld-linux-x86-64.so.2"
    program = machine.one("udev/usr/bin/udevadm")
    target = root / "udev"
    target.mkdir()
    shutil.copy(loader, target / "ld.so")
    shutil.copy(program, target / "udevadm")
    listed = subprocess.run([str(loader), "--library-path", f"{libs}:{libs}/systemd", "--list",
                             str(program)], capture_output=True, text=True)
    for library in re.findall(r"=> (/\S+) \(0x", listed.stdout):
        shutil.copy(library, target / pathlib.Path(library).name)
    rules = root / "etc/udev/rules.d"
    rules.mkdir(parents=True)
    shutil.copy(guest.TOP / "udev/70-tessera.rules", rules)


def tier_udev(machine):
    modules = guest.iommufd_modules(machine)
    machine.fetch("udev")
    return guest.run_guest(machine, UDEV_SCRIPT, ["-device", "edu"], 1, 11, [], modules,
                     extra=copy_udev) + nodes_of_the_driver(machine)


def nodes_of_the_driver(machine):
    machine.fetch("busybox", "qemu", "kernel", "kbuild", "udev")
    work = pathlib.Path(tempfile.mkdtemp(prefix="tessera-vm-"))
    try:
        guest.build_driver(machine, work)

        def copy(root, machine):
            copy_udev(root, machine)
            late = root / "modules/late"
            late.mkdir()
            for i, m in enumerate(("drm_panel_orientation_quirks", "drm")):
                if (data := machine.module(m)) is not None:
                    (late / f"{i}-{m}.ko").write_bytes(data)
            shutil.copy(work / "src/kernel-uapi/driver/tessera.ko", late / "9-tessera.ko")

        return guest.run_guest(machine, ACCEL_SCRIPT, [], 2, 10, [], {}, extra=copy)
    finally:
        shutil.rmtree(work, ignore_errors=True)
