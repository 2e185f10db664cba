#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes sure that the Debian packages the build needs are there.
#
#	tools/packages.sh build|lint|fuzz|vm	what to have
#
# As root it installs what is missing. Otherwise it prints the one command that does,
# and fails. Where dpkg is not the package manager it trusts what it finds.
set -eu

build="gcc make pkg-config libc6-dev libsleef-dev libelf-dev libprotobuf-c-dev
	protobuf-c-compiler libjson-c-dev libnuma-dev libpci-dev libdrm-dev libssl-dev
	libcmocka-dev python3 python3-venv"
lint="$build"
fuzz="$build clang libclang-rt-14-dev"

vm="$build cpio kmod xz-utils"

case "${1-}" in
build) wanted=$build ;;
lint) wanted=$lint ;;
fuzz) wanted=$fuzz ;;
vm) wanted=$vm ;;
*) echo "usage: $0 build|lint|fuzz|vm" >&2; exit 2 ;;
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
apt-get update -q >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >/dev/null
