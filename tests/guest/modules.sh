#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian's kernels have no iommufd. This builds its module, and VFIO's with device files and
# the mode without an IOMMU, from the kernel's own source for the kernel in the cache that
# fetch.sh filled.
#
#     modules.sh CACHE
#
# Makes CACHE/modules/VERSION/*.ko, once for each version of this file. Exits 77 with a reason
# if it can't.
set -eu

cache=$(cd "$1" && pwd)
version=$(basename "$cache"/kernel/boot/vmlinuz-*)
version=${version#vmlinuz-}
out=$cache/modules/$version
build=$cache/modules/build
log=$cache/modules/build.log

mark=$(grep -v '^#' "$0" | cksum)
[ "$(cat "$out/done" 2>/dev/null)" != "$mark" ] || exit 0
ready=$(sh "$(dirname "$0")/headers.sh" "$cache")
headers=${ready% *} compiler=${ready##* }
command -v xz >/dev/null || {
	echo "no xz here, which modules of $version need" >&2
	exit 77
}

rm -rf "$build"
mkdir -p "$build" "$out"
rm -f "$out/done"
tar -xJf "$cache"/source/usr/src/linux-source-*.tar.xz -C "$build" --strip-components=1 \
	--wildcards '*/drivers/iommu/*.h' '*/drivers/iommu/iommufd/*' '*/drivers/vfio/*' \
	'*/lib/interval_tree.c'

# What the kernel's image lacks of the interval tree; the rest it exports.
iommufd=$build/drivers/iommu/iommufd
{
	printf '#include <linux/interval_tree.h>\n#include <linux/module.h>\n'
	sed -n '/^#ifdef CONFIG_INTERVAL_TREE_SPAN_ITER/,/^#endif/p' "$build/lib/interval_tree.c" |
		grep -v EXPORT_SYMBOL
} >"$iommufd/span.c"
printf "\n#include <linux/module.h>\nMODULE_LICENSE(\"GPL\");\n" >>"$iommufd/iova_bitmap.c"
cat >"$iommufd/Kbuild" <<'KBUILD'
obj-m := iommufd.o iova_bitmap.o
iommufd-y := device.o fault.o hw_pagetable.o io_pagetable.o ioas.o main.o pages.o vfio_compat.o \
	span.o
KBUILD
cat >"$build/drivers/vfio/Kbuild" <<'KBUILD'
obj-m := vfio.o vfio_iommu_type1.o pci/
vfio-y := vfio_main.o device_cdev.o group.o iommufd.o container.o virqfd.o
KBUILD
cat >"$build/drivers/vfio/pci/Kbuild" <<'KBUILD'
obj-m := vfio-pci-core.o vfio-pci.o
vfio-pci-core-y := vfio_pci_core.o vfio_pci_intrs.o vfio_pci_rdwr.o vfio_pci_config.o
vfio-pci-y := vfio_pci.o vfio_pci_igd.o
KBUILD
cat >"$build/Kbuild" <<'KBUILD'
subdir-ccflags-y := -DCONFIG_IOMMUFD=1 -DCONFIG_IOMMUFD_DRIVER=1 -DCONFIG_VFIO_DEVICE_CDEV=1 \
	-DCONFIG_INTERVAL_TREE_SPAN_ITER=1 -DCONFIG_VFIO_NOIOMMU=1
obj-m := drivers/iommu/iommufd/ drivers/vfio/
KBUILD

if ! make -C "$headers" M="$build" CC="$compiler" -j2 modules >"$log" 2>&1; then
	grep -iE 'error|\*\*\*' "$log" | head -n 20 >&2
	echo "building the modules failed; $log has it all" >&2
	exit 1
fi
find "$build" -name '*.ko' -exec cp {} "$out/" \;
rm -rf "$build"
echo "$mark" >"$out/done"
