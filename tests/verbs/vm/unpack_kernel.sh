#!/usr/bin/env bash
# unpack_kernel.sh FOLDER puts Debian's generic kernel into FOLDER, as `vmlinux` and `lib/modules`. apt fetches the
# package; nothing is installed. A status of 77 means that the kernel cannot be had here. In this case, the last line on
# stderr says why. (Debian's kernel for clouds has neither Soft-RoCE nor 9p.)
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
folder=$(realpath -m "$1")
mkdir -p "$folder"

# give_up WHY ends the script.
give_up() {
  echo "no virtual machine: $1" >&2
  exit 77
}

exec 9>"$folder/lock"
flock 9
[[ ! -e $folder/vmlinux ]] || exit 0

# download fetches the package on which linux-image-amd64 depends.
download() {
  local package
  package=$(apt-cache depends linux-image-amd64 2>&1 | awk '/Depends:/ && !n++ { print $2 }')
  [[ -n $package ]] || { echo "apt knows no package linux-image-amd64"; return 1; }
  (cd "$folder" && apt-get -qq -o APT::Sandbox::User=root download "$package") 2>&1
}

# The package lists of apt may be too old to fetch anything.
if ! compgen -G "$folder/linux-image-*.deb" >/dev/null; then
  download >"$folder/download.log" || { apt-get -qq update && download; } >>"$folder/download.log" 2>&1 ||
    give_up "the kernel cannot be fetched: $(tail -n 1 "$folder/download.log")"
fi
rm -rf "${folder:?}"/{boot,lib,new}
packages=("$folder"/linux-image-*.deb)
dpkg-deb --fsys-tarfile "${packages[-1]}" |
  tar -x -C "$folder" --wildcards './boot/vmlinuz-*' './lib/modules/*/modules.*' './lib/modules/*/kernel/arch/*' \
    './lib/modules/*/kernel/'{crypto,drivers/infiniband,drivers/net,drivers/virtio,fs,lib,net}'/*'
depmod -b "$folder" "$(ls "$folder/lib/modules")"

# The kernel is decompressed here, since a virtual machine would take seconds for it at each start.
image=$(echo "$folder"/boot/vmlinuz-*)
start=$(LC_ALL=C grep -abom1 $'\xfd7zXZ' "$image" | awk -F: 'NR == 1 { print $1 }')
[[ -n $start ]] || give_up "$image is not compressed by xz"
xz -dc --single-stream < <(tail -c "+$((start + 1))" "$image") >"$folder/new"
rm -rf "${folder:?}"/boot "$folder"/linux-image-*.deb
mv "$folder/new" "$folder/vmlinux"
