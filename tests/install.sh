#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs into a folder of its own and uses what is there as a stranger would: builds a
# program with pkg-config, runs it, asks the tools. `make check-install` runs it; BUILD
# and MODE say which build, LINK what its programs are linked with. Leaves nothing behind.
set -eu
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
export DESTDIR=$top/root PREFIX=/opt/tessera LIBDIR=/opt/tessera/lib
prefix=$DESTDIR$PREFIX
# An outer make's flags would name its own jobs and goals.
unset MAKEFLAGS MFLAGS MAKELEVEL
make_it() {
	$MAKE -s BUILD="$BUILD" MODE="$MODE" DESTDIR="$DESTDIR" \
		PREFIX="$PREFIX" LIBDIR="$LIBDIR" "$@"
}
fail() {
	echo "install: $*" >&2
	exit 1
}

touch "$top/now"
make_it install
[ -z "$(find "$BUILD/$MODE" -name '*.o' -newer "$top/now")" ] || fail "installing built anew"
rm "$top/now"
[ -z "$(find "$top" ! -type d ! -path "$prefix/*")" ] || fail "files outside the prefix"
for file in bin/xla-smi bin/tessera-objdump bin/tessera-bringup lib/libtessera.so.0 \
	lib/tessera/pjrt_plugin_tessera.so \
	lib/pkgconfig/tessera.pc include/tessera/hal.h share/man/man1/tessera-objdump.1 \
	share/bash-completion/completions/xla-smi share/man/man8/tessera-sim.8 \
	lib/udev/rules.d/70-tessera.rules lib/modules-load.d/tessera.conf sbin/tessera-vfio-bind \
	lib/systemd/system/tessera-sim.service include/drm/tessera_drm.h \
	share/applications/tessera-bringup.desktop include/drm/tessera_device.h; do
	[ -f "$prefix/$file" ] || fail "no $file"
done

# The service runs what was installed; the helper runs; the rules are this tree's.
unit=$prefix/lib/systemd/system/tessera-sim.service
grep -q "^ExecStart=$PREFIX/bin/tessera-sim " "$unit" || fail "the unit starts another tessera-sim"
[ -x "$prefix/bin/tessera-sim" ] || fail "no tessera-sim for the unit"
"$prefix/sbin/tessera-vfio-bind" --help >/dev/null || fail "tessera-vfio-bind --help"
cmp -s udev/70-tessera.rules "$prefix/lib/udev/rules.d/70-tessera.rules" || fail "other rules"

# DKMS has all that the driver's Kbuild and the sources name, and nothing that was built;
# with headers of a kernel that has accel, it builds.
driver=$(echo "$prefix"/src/tessera-*)
for word in PACKAGE_NAME=\"tessera\" "PACKAGE_VERSION=\"${driver##*-}\""; do
	grep -qx "$word" "$driver/dkms.conf" || fail "dkms.conf lacks $word"
done
for object in $(grep -oE 'tessera_[a-z]+\.o' "$driver/kernel-uapi/driver/Kbuild"); do
	[ -f "$driver/kernel-uapi/driver/${object%.o}.c" ] ||
		fail "DKMS's tree lacks ${object%.o}.c"
done
for header in $(grep -rhoE '^#include "hal/[^"]*' "$driver" | cut -d '"' -f 2 | sort -u); do
	[ -f "$driver/$header" ] || fail "DKMS's tree lacks $header"
done
[ -z "$(find "$driver" -type f ! -name '*.[ch]' ! -name '*.def' ! -name Kbuild \
	! -name Makefile ! -name dkms.conf)" ] || fail "more than sources in $driver"
for headers in /usr/src/linux-headers-*/; do
	if ! grep -qs '^CONFIG_DRM_ACCEL=y' "$headers/.config"; then
		continue
	fi
	cp -r "$driver" "$top/driver"
	make -s -C "$top/driver/kernel-uapi/driver" KDIR="$headers" >"$top/log" 2>&1 ||
		fail "the driver does not build for $headers: $(cat "$top/log")"
	break
done

# A program of ten lines, and each header alone.
cat >"$top/use.c" <<'END'
#include <stdio.h>
#include <tessera/hal.h>
int main(void)
{
	struct hal_options options = { .devices = "sim", .sim = "hbm=64M" };
	struct hal_device_info info;
	struct hal_device *dev = NULL;
	struct hal_mem *mem = NULL;
	struct hal *hal;
	struct err err;
	char back[6] = "";
	if (hal_create(&options, &hal, &err) || hal_device_info(hal, 0, &info, &err) ||
	    hal_device_open(hal, 0, &dev, &err) ||
	    hal_mem_alloc(dev, HAL_MEM_HBM, 6, "greeting", &mem, &err) ||
	    hal_copy_in(mem, 0, "hello", 6, CLOCK_FOREVER, &err) ||
	    hal_copy_out(back, mem, 0, 6, CLOCK_FOREVER, &err))
		return fprintf(stderr, "%s\n", err.msg), 1;
	printf("%s from %s\n", back, info.name);
	hal_mem_free(mem);
	hal_device_close(dev);
	hal_destroy(hal);
	return 0;
}
END
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
grep -q "^prefix=$PREFIX\$" "$PKG_CONFIG_PATH/tessera.pc" || fail "the .pc file has another prefix"
# The prefix as it will be is not there now: say where it is.
flags=$(pkg-config --define-variable=prefix="$prefix" --cflags --libs tessera)
$CC -Wall -Wextra -Werror "$top/use.c" $LINK $flags -o "$top/use"
said=$(LD_LIBRARY_PATH="$prefix/lib" TESSERA_TELEMETRY_DIR="$top" "$top/use")
[ "$said" = "hello from Tessera T1" ] || fail "the program says \"$said\""
drm=$(pkg-config --cflags libdrm)
for header in $(cd "$prefix/include" && find . -name '*.h'); do
	for standard in gnu11 "c11 -pedantic"; do
		echo "#include <$header>" |
			$CC -std=$standard -Wall -Werror $flags $drm -fsyntax-only -x c - ||
			fail "$header does not compile alone as $standard"
	done
done
if command -v c++ >/dev/null; then
	c++ -Wall -Werror -x c++ "$top/use.c" -x none $LINK $flags -o "$top/use-cc" ||
		fail "the program does not build as C++"
else
	echo "install: no C++ compiler here, the headers are not tried with one"
fi

# The library's name, and what it exports: what the two doors declare, in one version.
library=$prefix/lib/libtessera.so.0
readelf -d "$library" | grep -q 'SONAME.*\[libtessera.so.0\]' || fail "another soname"
grep -ohE '\bhal_[a-z0-9_]+\(' "$prefix/include/tessera/hal.h" \
	"$prefix/include/tessera/telemetry.h" | tr -d '(' | sort -u >"$top/declared"
nm -D --defined-only "$library" | awk '$2 == "T" { print $3 }' | sort -u >"$top/exported"
sed 's/$/@@TESSERA_0/' "$top/declared" | diff - "$top/exported" ||
	fail "declared (<) and exported (>) functions differ"

# Tools run from where they are, pages and completions are well-formed.
TESSERA_TELEMETRY_DIR="$top" "$prefix/bin/xla-smi" --json >/dev/null
version=$(pkg-config --modversion tessera)
for program in "$prefix"/bin/*; do
	[ "$("$program" --version)" = "${program##*/} $version" ] || fail "$program --version"
	! "$program" --version >&- 2>/dev/null || fail "$program hides lost output"
done
for program in "$prefix"/bin/* "$prefix"/sbin/*; do
	set -- "$prefix"/share/man/man[18]/"${program##*/}".[18]
	[ -f "$1" ] || fail "$program has no manual page"
done
for page in "$prefix"/share/man/man[18]/*; do
	command -v groff >/dev/null || break
	[ -z "$(groff -man -ww -z "$page" 2>&1)" ] || fail "$page is no clean manual page"
done
for tool in xla-smi tessera-objdump tessera-bringup; do
	bash -c '. "$1/share/bash-completion/completions/$2" && f=$(complete -p "$2") &&
		f=${f#*-F } && "${f%% *}" "$1/bin/$2" --js && [ "${COMPREPLY[*]}" = --json ]' \
		bash "$prefix" "$tool" || fail "completion for $tool"
done
if grep -rlF "$(pwd)" "$prefix/include" "$prefix/share" "$prefix/lib/pkgconfig"; then
	fail "a path of this tree is in what was installed"
fi

make_it install		# over itself
make_it uninstall
left=$(find "$prefix" ! -type d 2>/dev/null || true)
[ -z "$left" ] || fail "uninstall leaves $left"
for folder in include/tessera lib/tessera "src/${driver##*/}"; do
	[ ! -e "$prefix/$folder" ] || fail "uninstall leaves $folder"
done
echo "install: whole"
