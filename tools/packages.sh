#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes sure that the Debian packages the build needs are there.
#
#	tools/packages.sh build|lint|fuzz|vm|arm64	what to have
#
# As root it installs what is missing. Otherwise it prints the one command that does,
# and fails. Where dpkg is not the package manager it trusts what it finds.
set -eu

build="gcc make pkg-config libc6-dev libsleef-dev libelf-dev libprotobuf-c-dev
	protobuf-c-compiler libjson-c-dev libnuma-dev libpci-dev libdrm-dev libssl-dev
	libcmocka-dev libncurses-dev python3 python3-venv"
# What tests have desktops with: libunity is loaded at run time, so its headers are not needed.
lint="$build tmux libunity9 dbus-daemon dbus-bin"
fuzz="$build clang libclang-rt-14-dev"

vm="$build cpio kmod xz-utils"

# A cross compiler, and the libraries that are linked, as the other architecture has them.
arm64="$build gcc-aarch64-linux-gnu qemu-user-static
	$(for p in $build; do case $p in lib*) echo $p:arm64 ;; esac; done)"

case "${1-}" in
build) wanted=$build ;;
lint) wanted=$lint ;;
fuzz) wanted=$fuzz ;;
vm) wanted=$vm ;;
arm64) wanted=$arm64 ;;
*) echo "usage: $0 build|lint|fuzz|vm|arm64" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
	echo "packages: no dpkg here; needed: $(echo $wanted)" >&2
	exit 0
fi

missing=
for package in $wanted; do
	# A line for each architecture that it is there for.
	dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
		missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "These packages are missing. Install them, then run make again:" >&2
	echo "    sudo apt-get install -y --no-install-recommends$missing" >&2
	exit 1
fi
echo "installing:$missing"
[ "$1" != arm64 ] || dpkg --add-architecture arm64
apt-get update -q >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >/dev/null
