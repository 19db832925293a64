#!/usr/bin/env bash
# build_images.sh FOLDER builds the images of docker/Dockerfile with podman: `tutti`, `tutti:sshd`
# and `tutti:build`. debootstrap makes the base of these images, so that no image registry is
# needed. podman keeps its images and settings in FOLDER. Exit status 77 means that this machine
# cannot make images. The last line on stderr then says why.
set -euo pipefail
source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
folder=$(realpath "$1")
export CONTAINERS_CONF=$folder/containers.conf CONTAINERS_STORAGE_CONF=$folder/storage.conf

# give_up WHY ends the script.
give_up() {
  echo "no container images: $1" >&2
  exit 77
}
# cannot NAME ends the script because the step NAME has failed. It prints the name and the last line
# of the step's log.
cannot() { give_up "$1: $(tail -n 1 "$folder/$1.log")"; }

rm -rf "$folder/networks"  # removes networks of earlier tests

# These settings also work on machines that mount control groups of both versions 1 and 2, and on
# machines where limits cannot be raised.
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

# Packages are fetched through apt's proxy, with apt's passwords.
eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
export http_proxy https_proxy
passwords=/etc/apt/auth.conf.d

if ! podman image exists localhost/debian:base; then
  # The script uses the archive from which apt installs Debian on this machine.
  # shellcheck disable=SC2016  # the $(...) is apt's
  archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' \
    'Component: main' 2>"$folder/archive.log" | grep -E '^https?://' | sort -u | head -n 1) ||
    give_up "apt's lists name no archive of Debian (\`apt-get update\` fetches the lists)"
  rm -rf "$folder/root"
  # debootstrap fetches packages with wget, which reads passwords from ~/.netrc. Entries in ~/.netrc
  # name only hosts, unlike those in apt's files.
  rm -rf "$folder/netrc" && mkdir -m 700 "$folder/netrc"
  trap 'rm -rf "$folder/netrc"' EXIT
  find "$passwords" -name '*.conf' \
    -exec sed -E 's,^(machine\s+)(https?://)?([^/: ]+)\S*,\1\3,' {} + >"$folder/netrc/.netrc"
  HOME=$folder/netrc debootstrap --variant=minbase --include=ca-certificates bookworm "$folder/root" "$archive" \
    >"$folder/debootstrap.log" 2>&1 || cannot debootstrap
  rm -f "$folder/root"/var/cache/apt/archives/*.deb
  cp /etc/ssl/certs/ca-certificates.crt "$folder/root/etc/ssl/certs" 2>"$folder/certificates.log" || :
  tar -C "$folder/root" -c . | podman import - localhost/debian:base >"$folder/import.log" 2>&1 || cannot import
  rm -rf "$folder/root"
fi
podman run --rm --net=host localhost/debian:base true >"$folder/run.log" 2>&1 || cannot run

# build TARGET TAG builds a stage of the Dockerfile. It uses the network of the host, since this
# machine may forbid podman to make a network. If packages cannot be fetched, it tries again, since
# another attempt may succeed.
build() {
  local attempt
  for attempt in 1 2 3; do
    podman build --network=host --volume "$passwords:/etc/apt/auth.conf.d:ro" --build-arg BASE=localhost/debian:base \
      -f "$source/docker/Dockerfile" --target "$1" -t "localhost/$2" "$source" >"$folder/build.log" 2>&1 && return
    grep -qE 'Failed to fetch|Unable to locate package' "$folder/build.log" || { cat "$folder/build.log" >&2; exit 1; }
    sleep $((10 * attempt))
  done
  cannot build
}
build build tutti:build
build runtime tutti
build sshd tutti:sshd
# Removes the images of earlier sources, and before that what uses them: the containers of builds and tests that
# were killed.
{
  podman ps --all --external --quiet | xargs --no-run-if-empty podman rm --force
  podman image prune --force
} >"$folder/prune.log" 2>&1 || { cat "$folder/prune.log" >&2; exit 1; }
