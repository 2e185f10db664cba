#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kernel driver in a virtual machine, on a T1 that tessera-sim serves.
#
#     guest.sh MODULE TEST        MODULE is a built tessera.ko, TEST a program of ours
#
# Needs no root. In the environment:
#   QEMU      a QEMU 11.1 or newer for x86_64, with its options for libraries if any
#   KERNEL    the kernel image that the module was built for
#   MODULES   its folder of modules (.../lib/modules/VERSION)
#   BUSYBOX   a static busybox
#   SERVER    tessera-sim; empty: load and unload the module without a device
# and takes TEST_ARGS (for the test), TEST_ENV (its environment: TESSERA_DEVICES=accel:0 to run
# a program over the HAL), TEST_FILES (folders that it reads, relative to where both run),
# WORK (a folder for what is made), LIMIT (90 s), DEVICES (1), MODULE_ARGS (for the last insmod),
# CMDLINE (more for the kernel: intel_iommu=off has the driver see real addresses).
# CPU (max: the guest's, by which its kernel knows whether a host bridge carries peer-to-peer DMA).
# KILL (1: the server ends when a test says so), PORT (the devices are below root ports with
# these properties, x-speed=5; into the first port go the errors that a test names).
# Prints what the guest printed; exit status 0 only if the guest said PASSED.
set -eu

module=$1 test=$2
: "${QEMU:?}" "${KERNEL:?}" "${MODULES:?}" "${BUSYBOX:?}"
SERVER=${SERVER-}
WORK=${WORK:-$(mktemp -d)}
LIMIT=${LIMIT:-90}
DEVICES=${DEVICES:-1}
root=$WORK/root
rm -rf "$root"
mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/tmp" "$root/lib" \
	"$WORK/sock"
cp "$BUSYBOX" "$root/bin/busybox"
cp "$module" "$root/lib/tessera.ko"
cp "$test" "$root/bin/drive"
chmod +x "$root/bin/busybox" "$root/bin/drive"
# A module and, before it, what it needs; a name that is not found is built in.
list=
add()
{
	found=$(find "$MODULES/" -name "$1.ko*" | head -n 1)
	[ -n "$found" ] || return 0
	case " $list " in *" $1 "*) return 0 ;; esac
	case $found in
	*.xz) xz -dc "$found" > "$root/lib/$1.ko" ;;
	*.zst) zstd -dcq "$found" > "$root/lib/$1.ko" ;;
	*) cp "$found" "$root/lib/$1.ko" ;;
	esac
	for need in $(modinfo -F depends "$root/lib/$1.ko" | tr , ' '); do
		add "$need"
	done
	list="$list $1"
}
add drm
# A program that is not static takes its libraries along.
for library in $(ldd "$test" 2>/dev/null | grep -o '/[^ ]*'); do
	mkdir -p "$root$(dirname "$library")"
	cp -L "$library" "$root$library"
done
for folder in ${TEST_FILES-}; do
	mkdir -p "$root/$(dirname "$folder")"
	cp -r "$folder" "$root/$folder"
done

cat > "$root/init" <<EOF
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir /dev/shm
mount -t debugfs none /sys/kernel/debug
mount -t tmpfs none /tmp
echo 1 > /proc/sys/kernel/panic_on_oops
ok=PASSED
for m in $list; do
	insmod /lib/\$m.ko || ok=FAILED
done
for i in 1 2; do
	insmod /lib/tessera.ko || ok=FAILED
	rmmod tessera || ok=FAILED
done
insmod /lib/tessera.ko ${MODULE_ARGS-} || ok=FAILED
if [ -n "$SERVER" ]; then
	ls -l /dev/accel
	env ${TEST_ENV-} drive ${TEST_ARGS:-} || ok=FAILED
	cat /sys/class/devcoredump/devcd*/data 2>/dev/null | head -n 40
	echo "devcoredumps: \$(ls /sys/class/devcoredump 2>/dev/null | grep -c devcd)"
fi
rmmod tessera || ok=FAILED
lsmod
# A kernel for debugging says more.
if [ -e /sys/kernel/debug/kmemleak ]; then
	sleep 6
	for i in 1 2; do echo scan > /sys/kernel/debug/kmemleak; done
	cat /sys/kernel/debug/kmemleak
	! grep -qE 'tessera|drm|dma_buf|dma_fence' /sys/kernel/debug/kmemleak || ok=FAILED
fi
if [ -e /proc/lockdep_stats ]; then
	grep debug_locks /proc/lockdep_stats
	grep -q 'debug_locks: *1' /proc/lockdep_stats || ok=FAILED
fi
dmesg | grep -v 'Command line'
if dmesg | grep -E 'BUG:|WARNING:|Oops|INFO: task|refcount_t|list_(add|del) corr'; then
	ok=FAILED
fi
echo "guest: \$ok"
poweroff -f
EOF
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) > "$WORK/initrd.gz"

trap 'kill ${server-} ${killer-} ${injector-} ${asker-} 2>/dev/null || :' EXIT
device=
if [ -n "$SERVER" ]; then
	"$SERVER" --devices "$DEVICES" --hbm 256M --lanes 1 --socket-dir "$WORK/sock" \
		2> "$WORK/server.log" &
	server=$!
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ -S "$WORK/sock/$((DEVICES - 1)).sock" ] && break
		sleep 0.1
	done
	i=0
	while [ $i -lt "$DEVICES" ]; do
		bus=
		if [ -n "${PORT-}" ]; then
			device="$device -device pcie-root-port,id=port$i,chassis=$i,slot=$i,$PORT"
			bus=",\"bus\":\"port$i\""
		fi
		device="$device -device {\"driver\":\"vfio-user-pci\",\"x-msg-timeout\":600000"
		device="$device$bus,\"socket\":{\"path\":\"$WORK/sock/$i.sock\",\"type\":\"unix\"}}"
		i=$((i + 1))
	done
fi
: > "$WORK/console.log"
if [ -n "${KILL-}" ]; then
	(until grep -q 'kill the server now' "$WORK/console.log"; do sleep 0.2; done
	 kill $server) &
	killer=$!
fi
rm -f "$WORK/monitor.in"
mkfifo "$WORK/monitor.in"
: >"$WORK/monitor.out"
if [ -n "${PORT-}" ]; then
	(n=0
	 while sleep 0.2; do
		for name in $(sed -n 's/^# inject \([A-Z_]*\).*/\1/p' "$WORK/console.log" |
			      tail -n "+$((n + 1))"); do
			echo "pcie_aer_inject_error port0 $name" >"$WORK/monitor.in"
			n=$((n + 1))
		done
	 done) &
	injector=$!
fi
# Where the guest is if it does not end. The last sleep keeps no pipe open for whoever reads this.
(n=0
 while [ $n -lt "$LIMIT" ]; do sleep 1; n=$((n + 1)); done
 printf 'info status\ninfo registers -a\n' >"$WORK/monitor.in") >/dev/null 2>&1 &
asker=$!
# shellcheck disable=SC2086
timeout "$((LIMIT + 5))" $QEMU -accel tcg,thread=multi -cpu "${CPU:-max}" -smp 2 -m 1G \
	-nodefaults -display none -no-reboot -M q35,kernel-irqchip=split,memory-backend=mem0 \
	-object memory-backend-memfd,id=mem0,size=1G,share=on \
	-device intel-iommu,intremap=on,caching-mode=on $device \
	-monitor "pipe:$WORK/monitor" \
	-kernel "$KERNEL" -initrd "$WORK/initrd.gz" \
	-append "console=ttyS0 panic=-1 quiet no_timer_check intel_iommu=on ${CMDLINE-}" \
	-serial "file:$WORK/console.log" || {
	echo "guest.sh: QEMU ended with $?" >&2
	# Without what was typed, a line for each letter.
	grep -av '^(qemu)' "$WORK/monitor.out" | tr -d '\r\000' >&2 || :
}
tr -d '\r' < "$WORK/console.log"
grep -q '^guest: PASSED' "$WORK/console.log"
