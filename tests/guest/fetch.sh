#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the guest tests need, as Debian packages unpacked into a cache: nothing of the
# system changes, and no root is needed.
#
#     fetch.sh CACHE PART...
#
# PART: qemu, busybox, udev; kernel, kbuild, source: the 6.12 of bookworm-backports;
# kernel-7.2, kbuild-7.2, gcc-14, source-7.2: a 7.2 of trixie-backports, what builds modules for
# it, and its source.
#
# Debian's mirror is the one that the system's apt uses, or TESSERA_DEBIAN_MIRROR. What
# is in the cache already is not fetched again. Exits 77 if something can't be had, with
# the reason; prints nothing else on standard output.
set -eu

cache=$1
shift
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
apt=$cache/apt

skip() {
	echo "$*" >&2
	exit 77
}

# apt with lists, state and sources of its own; the system's proxy settings stay.
own_apt() {
	"$@" -q -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$apt/state" \
		-o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
		-o APT::Architecture=amd64 -o APT::Architectures=amd64 \
		-o APT::Get::List-Cleanup=0 -o Debug::NoLocking=1 \
		-o Acquire::Languages=none -o Acquire::Retries=2 -o APT::Sandbox::User= \
		-o DPkg::Post-Invoke= -o APT::Update::Post-Invoke= \
		-o APT::Update::Post-Invoke-Success= >>"$cache/fetch.log" 2>&1
}

find_mirror() {
	command -v apt-get >/dev/null || skip "no apt-get here"
	command -v dpkg-deb >/dev/null || skip "no dpkg-deb here"
	mirror=${TESSERA_DEBIAN_MIRROR-}
	# shellcheck disable=SC2016
	[ -n "$mirror" ] || mirror=$(apt-get indextargets --format \
		'$(ORIGIN)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		awk -F'|' '$1 == "Debian" && $2 == "main" { print $3; exit }')
	# Without package lists, what the sources say themselves.
	[ -n "$mirror" ] || mirror=$(cat /etc/apt/sources.list.d/debian.sources \
		/etc/apt/sources.list 2>/dev/null |
		awk '$1 == "URIs:" { print $2; exit } $1 == "deb" { print $2; exit }')
	[ -n "$mirror" ] || skip "no Debian mirror is known: set TESSERA_DEBIAN_MIRROR"
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -f "$keys" ] || skip "no $keys: install debian-archive-keyring"
}

prepare() {
	[ ! -f "$apt/ready" ] || return 0
	find_mirror
	mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
	: >"$apt/status"
	for suite in trixie trixie-backports bookworm-backports; do
		echo "deb [signed-by=$keys arch=amd64] $mirror $suite main"
	done >"$apt/sources.list"
	own_apt apt-get update || skip "apt-get update failed (see $cache/fetch.log)"
	: >"$apt/ready"
}

# get SUITE PACKAGE...: downloads with what they depend on; the files stay in archives
get() {
	suite=$1
	shift
	own_apt apt-get install -y -d --no-install-recommends -t "$suite" "$@" ||
		skip "apt-get could not get $* of $suite (see $cache/fetch.log)"
}

# alone SUITE PACKAGE...: these packages without others, into the folder archives/
alone() {
	suite=$1
	shift
	for p in "$@"; do
		(cd "$apt/cache/archives" && own_apt apt-get download -t "$suite" "$p") ||
			skip "apt-get could not get $p of $suite (see $cache/fetch.log)"
	done
}

unpack() {
	rm -rf "$1.new"
	mkdir -p "$1.new"
	for deb in "$apt"/cache/archives/*.deb; do
		dpkg-deb -x "$deb" "$1.new"
	done
	rm -f "$apt"/cache/archives/*.deb
	rm -rf "$1"
	mv "$1.new" "$1"
}

# The kernel's version: that of the kernel which is in the cache, else the newest.
kernel_version() {
	if [ -d "$cache/kernel" ]; then
		basename "$cache"/kernel/boot/vmlinuz-* | sed 's/^vmlinuz-//'
	else
		meta=$(own_apt_out apt-cache madison linux-image-amd64 |
			awk '/bookworm-backports/ { print $3; exit }')
		own_apt_out apt-cache depends "linux-image-amd64=$meta" |
			sed -n 's/.*Depends: linux-image-//p' | head -n 1
	fi
}

# newest 7.2: that which is in the cache, else the last of its line on the mirror
newest() {
	if [ -d "$cache/kernel-$1" ]; then
		basename "$cache/kernel-$1"/usr/lib/modules/*
	else
		own_apt_out apt-cache pkgnames "linux-binary-$1." |
			sed -n 's/^linux-binary-\([0-9.]*+deb13-amd64\)$/\1/p' | sort -V | tail -n 1
	fi
}

own_apt_out() {
	"$@" -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State="$apt/state" -o Dir::State::status="$apt/status" \
		-o Dir::Cache="$apt/cache" -o APT::Architecture=amd64 \
		-o APT::Architectures=amd64 2>>"$cache/fetch.log"
}

for part in "$@"; do
	[ ! -d "$cache/$part" ] || continue
	prepare
	rm -f "$apt"/cache/archives/*.deb
	case $part in
	qemu) get trixie-backports qemu-system-x86 ;;
	udev) get trixie udev ;;
	busybox) alone trixie busybox-static ;;
	kernel)
		v=$(kernel_version)
		[ -n "$v" ] || skip "no linux-image-amd64 in bookworm-backports"
		alone bookworm-backports "linux-image-$v" ;;
	kbuild)
		v=$(kernel_version)
		alone bookworm-backports "linux-headers-$v" \
			"linux-headers-${v%-amd64}-common" "linux-kbuild-${v%-amd64}" ;;
	source)
		v=$(kernel_version)
		alone bookworm-backports "linux-source-$(echo "$v" | cut -d. -f1-2)" ;;
	kernel-7.2)
		v=$(newest 7.2)
		[ -n "$v" ] || skip "no linux-binary-7.2 in trixie-backports"
		alone trixie-backports "linux-binary-$v" "linux-modules-$v" ;;
	kbuild-7.2)
		v=$(newest 7.2)
		alone trixie-backports "linux-headers-$v" \
			"linux-headers-${v%-amd64}-common" "linux-kbuild-${v%-amd64}" ;;
	source-7.2) alone trixie-backports linux-source-7.2 ;;
	gcc-14) get trixie gcc-14 libelf1t64 libssl3t64 zlib1g ;;
	*) echo "fetch.sh: no part $part" >&2; exit 2 ;;
	esac
	unpack "$cache/$part"
done
