#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a packager counts on, in a copy of the tree: another folder gives the same bytes,
# other flags build anew, a file that is gone leaves its archive, whoever installs builds
# nothing. `make check-build` runs it; BUILT and MODE say which build to compare with.
#
# The model's kernels are seven tenths of what a build takes. Of those that are there for several
# instruction sets the copy compiles what AVX2 has; the other objects it takes from BUILT, after
# looking for BUILT's tree in them.
set -eu
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
unset BUILD MAKEFLAGS MFLAGS MAKELEVEL DESTDIR PREFIX LIBDIR
fail() {
	echo "build: $*" >&2
	exit 1
}
copy=$top/another/folder
mkdir -p "$copy"
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$copy"
make_it() {
	$MAKE -C "$copy" -s MODE="$MODE" "$@"
}
# The same, with each command in $top/log.
tell_it() {
	$MAKE -C "$copy" V=1 MODE="$MODE" "$@" >"$top/log"
}
out=$copy/build/$MODE

# Objects are of these flags, which name the copy, if they are younger than the file.
make_it "build/$MODE/flags"
tree=$(pwd)
for object in "$BUILT"/hal/sim/*/*_portable.o "$BUILT"/hal/sim/*/*_avx512*.o; do
	case $object in
	*_portable.o) [ -f "${object%_portable.o}_avx2.o" ] || continue ;;
	*) [ -f "$object" ] || continue ;;
	esac
	if grep -qaF "$tree" "$object"; then
		fail "${object##*/} holds the path of its tree"
	fi
	taken=$out/${object#"$BUILT"/}
	mkdir -p "${taken%/*}"
	cp "$object" "$taken"
done

# The goal of a bare make is everything.
make_it -j"$(nproc)"
for file in pjrt_plugin_tessera.so xla-smi tessera-sim tessera-objdump tessera-bringup \
	libtessera.so.*; do
	for built in "$BUILT"/$file; do
		[ -f "$out/${built##*/}" ] || fail "a bare make does not build ${built##*/}"
		cmp "$built" "$out/${built##*/}" ||
			fail "${built##*/} depends on the folder it was built in"
	done
done
if strings -a "$out/pjrt_plugin_tessera.so" | grep -qF "$copy"; then
	fail "the plugin holds the path of its tree"
fi

# Nothing is built twice, and what installs builds nothing, whoever it is.
touch "$top/now"
make_it
installer="$MAKE -C $copy -s MODE=$MODE install DESTDIR=$top/root"
chmod 755 "$top"
mkdir -m 777 "$top/root"
if [ "$(id -u)" = 0 ]; then
	setpriv --reuid=65534 --regid=65534 --clear-groups sh -c "$installer"
else
	sh -c "$installer"
fi
[ -z "$(find "$copy" -newer "$top/now" -type f)" ] || fail "installing wrote into the tree"
multiarch=$(gcc -print-multiarch)
[ -f "$top/root/usr/local/lib/$multiarch/tessera/pjrt_plugin_tessera.so" ] ||
	[ ! -e /etc/debian_version ] || fail "no plugin in lib/$multiarch"

# Flags of the builder's are used and remembered.
object=$out/hal/base/err.o
make_it CFLAGS="-O1 -g" CPPFLAGS=-DTESSERA_PACKAGER=1 "build/$MODE/libbase.a"
[ "$object" -nt "$top/now" ] || fail "other CFLAGS built nothing anew"
tell_it CFLAGS="-O1 -g" CPPFLAGS=-DTESSERA_PACKAGER=1 "build/$MODE/libbase.a"
if grep -q "hal/base/err.c" "$top/log"; then
	fail "the same CFLAGS built anew"
fi
rm "$object"
tell_it CFLAGS="-O1 -g" CPPFLAGS=-DTESSERA_PACKAGER=1 "build/$MODE/libbase.a"
grep -q -- "-DTESSERA_PACKAGER=1 -O1 -g" "$top/log" || fail "CFLAGS or CPPFLAGS were dropped"

# An archive holds what the tree holds.
rm "$copy/hal/base/log.c"
make_it CFLAGS="-O1 -g" CPPFLAGS=-DTESSERA_PACKAGER=1 "build/$MODE/libbase.a"
if ar t "$out/libbase.a" | grep -q log.o; then
	fail "log.c is gone and still in libbase.a"
fi
echo "build: whole"
