#!/usr/bin/env bash
# build_images.sh FOLDER builds the images `tutti` and `tutti:sshd` of docker/Dockerfile by podman. Their base is made by
# debootstrap, so that no image registry is needed. Images and settings of podman are kept in FOLDER.
# A status of 77 means that no image can be made on this machine; the last line on stderr then says why.
set -euo pipefail
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
folder=$(realpath "$1")
export CONTAINERS_CONF=$folder/containers.conf CONTAINERS_STORAGE_CONF=$folder/storage.conf

# cannot NAME: says that a step has failed, with the last line of its log, and gives up.
cannot() {
  echo "no container images: $1: $(tail -n 1 "$folder/$1.log")" >&2
  exit 77
}

# These settings also work where control groups of version 1 are mounted beside those of version 2, and where limits
# cannot be raised.
cat >"$CONTAINERS_CONF" <<CONF
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "$folder/networks"
[containers]
default_ulimits = ["nofile=16384:16384", "nproc=4096:4096"]
CONF
cat >"$CONTAINERS_STORAGE_CONF" <<CONF
[storage]
driver = "overlay"
graphroot = "$folder/storage"
runroot = "$folder/run"
CONF

# On Debian, the archive is the one that apt uses here.
archive=http://deb.debian.org/debian
if grep -qx ID=debian /etc/os-release; then
  lists=(/etc/apt/sources.list /etc/apt/sources.list.d/*)
  found=$(grep -hoP '^(URIs:|deb ).*?\Khttp://\S+' "${lists[@]}" 2>/dev/null | head -n 1) || :
  archive=${found:-$archive}
fi

if ! podman image exists localhost/debian:base; then
  rm -rf "$folder/root"
  debootstrap --variant=minbase bookworm "$folder/root" "$archive" >"$folder/debootstrap.log" 2>&1 || cannot debootstrap
  rm -f "$folder/root"/var/cache/apt/archives/*.deb
  tar -C "$folder/root" -c . | podman import - localhost/debian:base >"$folder/import.log" 2>&1 || cannot import
  rm -rf "$folder/root"
fi
podman run --rm --net=host localhost/debian:base true >"$folder/run.log" 2>&1 || cannot run

# The network of the host is used, since this machine may forbid podman to make one.
build=(podman build --network=host --build-arg BASE=localhost/debian:base -f "$source/docker/Dockerfile")
"${build[@]}" --target runtime -t localhost/tutti "$source"
"${build[@]}" --target sshd -t localhost/tutti:sshd "$source"
