#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The udev rules by udevadm's own checker, where one is installed that has it, and the VFIO
# helper on a sysfs that is a folder. Guests try both for real: make check-vm T=T4.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
bind=$top/tools/tessera-vfio-bind
sysfs=$(mktemp -d)
trap 'rm -rf "$sysfs"' EXIT
export SYSFS="$sysfs"
failed=0

# expect NAME STATUS WORDS COMMAND...
expect() {
	name=$1 wanted=$2 words=$3
	shift 3
	status=0
	out=$("$@" 2>&1) || status=$?
	case $out in *"$words"*) found=true ;; *) found=false ;; esac
	if [ $status -eq "$wanted" ] && $found; then
		echo "ok   $name"
	else
		echo "FAIL $name: status $status, said: $out"
		failed=$((failed + 1))
	fi
}

# function ADDRESS CLASS GROUP DRIVER [ID]
function_() {
	d=$sysfs/bus/pci/devices/$1
	mkdir -p "$d" "$sysfs/kernel/iommu_groups/$3/devices" "$sysfs/bus/pci/drivers/$4"
	echo 0x1234 >"$d/vendor"
	echo 0x7e55 >"$d/device"
	echo "$2" >"$d/class"
	printf 'DRIVER=%s\nPCI_CLASS=%X\nPCI_ID=%s\n' "$4" "$2" "${5:-1234:7E55}" >"$d/uevent"
	: >"$d/driver_override"
	: >"$sysfs/bus/pci/drivers/$4/unbind"
	ln -s "$sysfs/bus/pci/drivers/$4" "$d/driver"
	ln -s "$sysfs/kernel/iommu_groups/$3" "$d/iommu_group"
	ln -s "$d" "$sysfs/kernel/iommu_groups/$3/devices/$1"
}
function_ 0000:01:00.0 0x120000 7 tessera
function_ 0000:01:00.1 0x040300 7 snd_hda_intel 8086:A170
function_ 0000:00:1c.0 0x060400 7 pcieport 8086:A110
function_ 0000:02:00.0 0x120000 8 vfio-pci
function_ 0000:07:00.0 0x120000 13 tessera
: >"$sysfs/bus/pci/drivers_probe"

expect "lists ours" 0 "0000:02:00.0  driver vfio-pci  iommu group 8" "$bind" --list
expect "shows what it would write" 0 \
	"echo vfio-pci > $sysfs/bus/pci/devices/0000:01:00.0/driver_override" \
	"$bind" --dry-run 0000:01:00.0
expect "takes it from its driver" 0 \
	"echo 0000:01:00.0 > $sysfs/bus/pci/devices/0000:01:00.0/driver/unbind" \
	"$bind" --dry-run 0000:01:00.0
expect "takes the whole group" 0 \
	"echo vfio-pci > $sysfs/bus/pci/devices/0000:01:00.1/driver_override" \
	"$bind" --dry-run 0000:01:00.0
function_ 0000:03:00.0 0x120000 9 tessera
rm "$sysfs/bus/pci/devices/0000:03:00.0/iommu_group"
expect "asks for an IOMMU" 0 "turn on VT-d" "$bind" --dry-run 0000:03:00.0
mkdir -p "$sysfs/module/vfio/parameters"
echo Y >"$sysfs/module/vfio/parameters/enable_unsafe_noiommu_mode"
expect "warns of doing without" 0 "could write all memory; name it vfio-noiommu:0000:03:00.0" \
	"$bind" --dry-run 0000:03:00.0
if "$bind" --dry-run 0000:01:00.0 | grep -q 1c.0; then
	echo "FAIL leaves bridges alone"
	failed=$((failed + 1))
else
	echo "ok   leaves bridges alone"
fi
if [ -s "$sysfs/bus/pci/devices/0000:01:00.0/driver_override" ]; then
	echo "FAIL a dry run writes nothing"
	failed=$((failed + 1))
else
	echo "ok   a dry run writes nothing"
fi
expect "knows what is done" 0 "0000:02:00.0: is with vfio-pci" "$bind" 0000:02:00.0
expect "says that it did not help" 1 "did not go to vfio-pci" "$bind" 0000:01:00.0
expect "gives back" 0 "echo  > $sysfs/bus/pci/devices/0000:02:00.0/driver_override" \
	"$bind" --dry-run --unbind 0000:02:00.0
expect "refuses an option behind an address" 2 "--dry-run has to stand before the addresses" \
	"$bind" 0000:07:00.0 --dry-run
expect "refuses all for one that is not there" 1 "there is no PCI function 0000:09:00.0" \
	"$bind" 0000:07:00.0 0000:09:00.0
if [ -s "$sysfs/bus/pci/devices/0000:07:00.0/driver_override" ]; then
	echo "FAIL what is refused writes nothing"
	failed=$((failed + 1))
else
	echo "ok   what is refused writes nothing"
fi
expect "refuses what is no address" 1 "write it like 0000:01:00.0" "$bind" 1:0
expect "refuses what is not there" 1 "there is no PCI function 0000:09:00.0" \
	"$bind" 0000:09:00.0
expect "refuses strange options" 2 "no option --force" "$bind" --force
expect "explains itself" 0 "ADDRESS is like" "$bind" --help

# The rule's own programs for a group's node, as udev would run them: who may have it.
programs=$(sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$top/udev/70-tessera.rules" |
	sed -n 's/^PROGRAM=="\/bin\/sh -c '\''\(.*\)'\''".*/\1/p' |
	sed -e "s|/sys/|$sysfs/|g" -e 's/\$\$/$/g')
given() {
	echo "$programs" | sed -n 1p | sed "s/%k/$1/" | sh | grep -q "PCI_ID=1234:7E55" &&
		[ -z "$(echo "$programs" | sed -n 2p | sed "s/%k/$1/" | sh)" ]
}
function_ 0000:04:00.0 0x120000 10 vfio-pci
function_ 0000:04:00.1 0x120000 10 vfio-pci
function_ 0000:00:1d.0 0x060400 10 pcieport 8086:A118
function_ 0000:05:00.0 0x600000 11 vfio-pci 8086:0001
function_ 0000:05:00.1 0x120000 11 vfio-pci
function_ 0000:06:00.0 0x020000 12 vfio-pci 8086:10D3
expect "gives a group of ours" 0 "" given 8
expect "gives a group with bridges" 0 "" given 10
expect "gives no group with a sound card" 1 "" given 7
expect "knows bridges by their class alone" 1 "" given 11
expect "gives no group without ours" 1 "" given 12

if ! command -v udevadm >/dev/null; then
	echo "skip udevadm verify: no udevadm here"
elif ! udevadm verify --help >/dev/null 2>&1; then
	echo "skip udevadm verify: udevadm $(udevadm --version) has no verify"
else
	expect "udevadm likes the rules" 0 "Fail:    0" udevadm verify --resolve-names=never \
		"$top/udev/70-tessera.rules"
fi
[ $failed -eq 0 ]
