# SPDX-License-Identifier: Apache-2.0
"""QEMU's edu and the model, through VFIO's groups and device files."""

import guest

EDU = """
for a in $(addresses 1234 11e8); do check bind tessera-vfio-bind $a; done
check edu edu $(addresses 1234 11e8)
"""

TYPE1 = """
for a in $(addresses 1234 7e55); do check bind-$a tessera-vfio-bind $a; done
for a in $(addresses 1234 7e55); do
	group=$(readlink /sys/bus/pci/devices/$a/iommu_group)
	check kernel-$a vfio ${group##*/} $a
done
check hal hal $(addresses 1234 7e55)
for a in $(addresses 1234 7e55); do check unbind-$a tessera-vfio-bind --unbind $a; done
"""

CDEV = """
for a in $(addresses 1234 7e55); do check bind-$a tessera-vfio-bind $a; done
check nodes test -c /dev/iommu -a -c /dev/vfio/devices/vfio0
check by-iommufd sh -c 'TESSERA_LOG=info hal "$@" >/tmp/log 2>&1; s=$?; cat /tmp/log
	grep -q "device file and iommufd" /tmp/log && exit $s' sh $(addresses 1234 7e55)
rm /dev/iommu
check by-group hal $(addresses 1234 7e55)
"""


def tier_edu(machine):
    machine.fetch("busybox", "qemu", "kernel")
    return guest.run_guest(machine, EDU, ["-device", "edu"], 0, 2, ["guest/edu"],
                     guest.stock_modules(machine))


def tier_type1(machine):
    machine.fetch("busybox", "qemu", "kernel")
    passed = 0
    for n in (1, 3):
        passed += guest.run_guest(machine, TYPE1, [], n, 3 * n + 1, ["guest/vfio", "guest/hal"],
                                  guest.stock_modules(machine), 300)
    return passed


def tier_iommufd(machine):
    return guest.run_guest(machine, CDEV, [], 2, 5, ["guest/hal"],
                     guest.iommufd_modules(machine), 300)
