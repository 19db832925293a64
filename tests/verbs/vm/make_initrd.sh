#!/usr/bin/env bash
# make_initrd.sh KERNEL FILE MODULE... writes the first files of a virtual machine to FILE: busybox, /init, the modules,
# and all modules that these need. The file /modules/list has the modules in the order of loading. KERNEL is a folder of
# unpack_kernel.sh.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
kernel=$1 file=$2
shift 2
root=$(mktemp -d "${TMPDIR:-/tmp}/initrd.XXXXXX")
trap 'rm -rf "$root"' EXIT

mkdir -p "$root"/{bin,modules,proc,sys,dev,host,writes,new}
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$(dirname "${BASH_SOURCE[0]}")/init" "$root/init"
for module in "$@"; do
  modprobe -d "$kernel" -S "$(ls "$kernel/lib/modules")" --show-depends "$module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r path; do
  cp "$path" "$root/modules/"
  echo "${path##*/}"
done >"$root/modules/list"
(cd "$root" && find . | cpio -o -H newc --quiet) >"$file"
