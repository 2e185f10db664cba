#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A kernel with the checks that Debian's lack (KASAN, lockdep, DMA-API debugging, debug objects,
# kmemleak, UBSAN), built from Debian's source in the cache that fetch.sh filled, with the options
# of debug.config and of debug-6.12.config or debug-7.2.config.
#
#     debug_kernel.sh CACHE [7.2]
#
# 7.2: of that source, else of 6.12's.
# Makes CACHE/kernel-debug, or kernel-debug-7.2: the kernel as usr/lib/modules/VERSION/vmlinuz,
# and in build what makes modules for it. Once for each version of this file and the options; that
# takes eleven minutes of one core and 3 GB while it builds. Exits 77 with a reason if it can't.
set -eu

cache=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
line=${2:+-$2}
out=$cache/kernel-debug$line
build=$out/build
log=$out/build.log

configs() { cat "$here/debug.config" "$here/debug${line:--6.12}.config"; }
mark=$({ cat "$0"; configs; } | grep -v '^#' | cksum)
[ "$(cat "$out/done" 2>/dev/null)" != "$mark" ] || exit 0
for tool in make gcc ld flex bison bc xz perl; do
	command -v $tool >/dev/null || {
		echo "no $tool here, which building a kernel needs" >&2
		exit 77
	}
done
echo '#include <gelf.h>' | gcc -E -o /dev/null - 2>/dev/null || {
	echo "no gelf.h here (libelf-dev), which building a kernel needs" >&2
	exit 77
}

rm -rf "$out"
mkdir -p "$build"
tar -xJf "$cache/source$line"/usr/src/linux-source-*.tar.xz -C "$build" --strip-components=1
configs >"$out/config"
cd "$build"
run() {
	"$@" >>"$log" 2>&1 || {
		grep -iE 'error|\*\*\*' "$log" | head -n 20 >&2
		echo "building the kernel failed; $log has it all" >&2
		exit 1
	}
}
run make allnoconfig KCONFIG_ALLCONFIG="$out/config"
for option in $(grep '^CONFIG' "$out/config"); do
	grep -qx "$option" .config || {
		echo "this kernel does not take $option of $out/config" >&2
		exit 1
	}
done
run make -j2 bzImage modules
version=$(make -s kernelrelease)
mkdir -p "$out/usr/lib/modules/$version"
mv arch/x86/boot/bzImage "$out/usr/lib/modules/$version/vmlinuz"
# What makes modules stays.
rm -rf Documentation block certs crypto drivers fs init io_uring ipc kernel mm net rust samples \
	security sound usr virt vmlinux*
find . -name '*.[oa]' -delete
echo "$mark" >"$out/done"
