# SPDX-License-Identifier: Apache-2.0
"""The udev rules: who may open what, with a real udevd."""

import pathlib
import re
import shutil
import subprocess

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
                     extra=copy_udev)
