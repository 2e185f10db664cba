# SPDX-License-Identifier: Apache-2.0
"""T1 devices of a machine without an IOMMU: refused until asked for by name, then used."""

import guest

BARE = """
says() {	# TEXT COMMAND...: fails, and says the text
	text=$1
	shift
	if "$@" >/tmp/log 2>&1; then return 1; fi
	grep -F "$text" /tmp/log || { cat /tmp/log; return 1; }
}
first=$(addresses 1234 7e55 | head -n 1)
huge=/sys/kernel/mm/hugepages/hugepages-2048kB
mode=/sys/module/vfio/parameters/enable_unsafe_noiommu_mode
check mode-is-named says "echo 1 | sudo tee $mode" hal vfio-noiommu $first
echo 1 >$mode
for a in $(addresses 1234 7e55); do check bind-$a tessera-vfio-bind $a; done
check node test -c /dev/vfio/noiommu-0
check name-is-needed says "has no IOMMU in front of it" hal vfio $first
check pages-are-named says "sudo tee $huge/nr_hugepages" hal vfio-noiommu $first
echo 128 >$huge/nr_hugepages
check hal hal vfio-noiommu $(addresses 1234 7e55)
check conformance env TESSERA_DEVICES=vfio-noiommu:$first conformance --quick
check pages-are-back test $(cat $huge/free_hugepages) = 128
"""


def tier_bare(machine):
    return guest.run_guest(machine, BARE, [], 2, 9, ["guest/hal", "conformance/conformance"],
                           guest.iommufd_modules(machine), 600, iommu=False)
