#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A T1 that tessera-sim serves, in a virtual machine, through the guest kernel's VFIO.
#
#     vfio.sh SERVER      SERVER is a built tessera-sim
#
# Needs no root, and in the environment:
#   QEMU      a QEMU 11 or newer for x86_64, with its options for libraries if any
#   KERNEL    a kernel image
#   MODULES   its folder of modules (.../lib/modules/VERSION)
#   BUSYBOX   a static busybox
# and takes MEMORY, the guest's: memory-backend-memfd,share=on, or memory-backend-ram to
# let the server ask for every page; LIMIT (120 s). Exits 77 if something is not there.
set -eu

for name in QEMU KERNEL MODULES BUSYBOX; do
	eval "value=\${$name-}"
	[ -n "$value" ] || { echo "vfio.sh: skipped: $name is not set"; exit 77; }
done
server=$1 top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill $pid; rm -rf "$work"' EXIT
mkdir -p "$work/root/bin" "$work/root/lib" "$work/root/proc" "$work/root/sys" "$work/root/dev"
cp "$BUSYBOX" "$work/root/bin/busybox"
${CC:-cc} -std=gnu11 -O1 -static -D_GNU_SOURCE -I"$top" -o "$work/root/bin/vfio" \
	"$top/tests/guest/vfio.c"
for m in irqbypass vfio vfio_iommu_type1 vfio-pci-core vfio-pci; do
	file=$(find "$MODULES/" -name "$m.ko*" | head -n 1)
	case $file in
	*.xz) xz -dc "$file" > "$work/root/lib/$m.ko" ;;
	*.zst) zstd -dcq "$file" > "$work/root/lib/$m.ko" ;;
	'') ;;	# built in
	*) cp "$file" "$work/root/lib/$m.ko" ;;
	esac
done
cat > "$work/root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
for m in irqbypass vfio vfio_iommu_type1 vfio-pci-core vfio-pci; do
	[ ! -f /lib/$m.ko ] || insmod /lib/$m.ko
done
passed=0
for d in /sys/bus/pci/devices/*; do
	[ "$(cat $d/vendor):$(cat $d/device)" = 0x1234:0x7e55 ] || continue
	echo "${d##*/}: 1234:7e55 class $(cat $d/class) reset by $(cat $d/reset_method)"
	echo vfio-pci > $d/driver_override
	echo ${d##*/} > /sys/bus/pci/drivers_probe
	group=$(readlink $d/iommu_group)
	/bin/vfio ${group##*/} ${d##*/} && passed=$((passed + 1))
done
echo "guest: $passed of 2 devices passed"
poweroff -f
INIT
chmod +x "$work/root/init" "$work/root/bin/busybox"
(cd "$work/root" && find . | cpio -o -H newc --quiet | gzip -1) > "$work/initrd.gz"

mkfifo "$work/ready"
"$server" --devices 2 --hbm 4G --socket-dir "$work/sock" > "$work/ready" &
pid=$!
read -r line < "$work/ready"
echo "$line"
device() {
	printf '{"driver":"vfio-user-pci","x-msg-timeout":600000,%s' "$2"
	printf '"socket":{"type":"unix","path":"%s/sock/%s.sock"}}' "$work" "$1"
}
# shellcheck disable=SC2086
timeout "${LIMIT:-120}" $QEMU -accel tcg,thread=multi -cpu max -smp 2 -m 1G -nodefaults \
	-display none -no-reboot -M q35,kernel-irqchip=split,memory-backend=mem0 \
	-object "${MEMORY:-memory-backend-memfd,share=on},id=mem0,size=1G" \
	-device intel-iommu,intremap=on,caching-mode=on -device pcie-root-port,id=port0 \
	-device "$(device 0 '"bus":"port0",')" -device "$(device 1 '')" \
	-kernel "$KERNEL" -initrd "$work/initrd.gz" \
	-append "console=ttyS0 panic=-1 quiet no_timer_check intel_iommu=on" \
	-serial "file:$work/console.log" || echo "vfio.sh: QEMU ended with $?" >&2
tr -d '\r' < "$work/console.log"
grep -q '^guest: 2 of 2 devices passed' "$work/console.log"
