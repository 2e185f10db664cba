#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Readies a kernel's headers in the cache that fetch.sh filled, so that modules can be built.
#
#     headers.sh CACHE [7.2 | debug | debug-7.2]
#
# Prints the folder of the headers and the compiler to give to make as CC: for the 6.12 of
# bookworm-backports and those for debugging (debug_kernel.sh) one of the system's, for 7.2 the
# cache's own gcc-14. That and 7.2's own build tools want a C library newer than bookworm's, so
# they run by their own loader; this needs neither root nor a chroot. Exits 77 with a reason if
# it can't.
set -eu

cache=$(cd "$1" && pwd)
line=${2:+-$2}

case $line in
-debug*)
	echo "$cache/kernel$line/build gcc"
	exit ;;
esac
skip() {
	echo "$*" >&2
	exit 77
}

case $line in
"")	version=$(basename "$cache"/kernel/boot/vmlinuz-* | sed 's/^vmlinuz-//') ;;
*)	version=$(basename "$cache/kernel$line"/usr/lib/modules/*) ;;
esac
headers=$cache/kbuild$line/usr/src/linux-headers-$version
[ -d "$headers" ] || skip "no headers for $version in $cache/kbuild$line"

# The headers' makefile names where the package would have put them.
{
	[ -z "$line" ] || echo "KBUILD_OUTPUT=$headers"
	echo "include ${headers%-amd64}-common/Makefile"
} >"$headers/Makefile"
# Without pahole there is no BTF to make; the guest does without.
[ ! -f "$headers/vmlinux" ] || mv "$headers/vmlinux" "$headers/vmlinux.unused"

compiler=$(sed -n 's/.*\(gcc-[0-9]*\).*/\1/p' "$headers/.kernelvariables" | head -n 1)
compiler=${compiler:-gcc}
if [ -n "$line" ]; then
	root=$cache/$compiler
	[ -d "$root" ] || skip "no $compiler in $cache, which modules of $version need"
	libs=$root/usr/lib/x86_64-linux-gnu
	load="$root/usr/lib64/ld-linux-x86-64.so.2 --library-path $libs"
	# by_loader NAME PROGRAM: a script NAME that runs PROGRAM. Made anew each time:
	# the cache may have moved.
	by_loader() {
		printf '#!/bin/sh\nexec %s %s "$@"\n' "$load" "$2" >"$1.new"
		chmod +x "$1.new"
		mv "$1.new" "$1"
	}
	# In modpost's place and objtool's are programs that pick one of several.
	kbuild=$cache/kbuild$line/usr/lib/linux-kbuild-${version%-amd64}
	for tool in scripts/basic/fixdep scripts/mod/modpost scripts/genksyms/genksyms \
			tools/objtool/objtool; do
		case $tool in
		*/modpost) real=$kbuild/$tool.real-lsb-64 ;;
		*/objtool) real=$kbuild/$tool.real-x86 ;;
		*) real=$kbuild/$tool.real
		   [ -f "$real" ] || mv "$kbuild/$tool" "$real" ;;
		esac
		[ -f "$real" ] || skip "the build tools of $version have no ${real##*/}"
		by_loader "$kbuild/$tool" "$real"
	done
	# The driver of the compiler runs its parts by the loader too.
	by_loader "$root/cc" "$root/usr/bin/x86_64-linux-gnu-$compiler -B$root/usr/bin/ \
-wrapper $(echo "$load" | tr ' ' ,)"
	compiler=$root/cc
fi
for tool in make ld "$compiler"; do
	command -v "$tool" >/dev/null || skip "no $tool here, which modules of $version need"
done
echo "$headers $compiler"
