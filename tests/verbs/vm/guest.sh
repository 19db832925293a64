#!/usr/bin/env bash
# guest.sh DEVICES MTU COMMAND... makes Soft-RoCE devices in the virtual machine, and runs COMMAND. The devices rxe0 and
# rxe1 are on the two ends of a virtual cable, at 10.7.0.1 and 10.7.0.2. Output and status go into the folder $shared.
set -euo pipefail
: "${shared:?}"
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
devices=$1 mtu=$2
shift 2

echo vm >/proc/sys/kernel/hostname
ip link set lo up
ip link add cable0 mtu "$mtu" type veth peer name cable1 mtu "$mtu"
for end in 0 1; do
  # Both ends belong to this machine, so packets arrive whose source is one of its own addresses. By default, the kernel
  # drops such packets.
  echo 1 >"/proc/sys/net/ipv4/conf/cable$end/accept_local"
  ip addr add "10.7.0.$((end + 1))/24" dev "cable$end"
  ip link set "cable$end" up
done
for ((i = 0; i < devices; i++)); do
  rdma link add "rxe$i" type rxe netdev "cable$i"
  port=/sys/class/infiniband/rxe$i/ports/1
  # The device gets its GIDs a moment later.
  until grep -q "ffff:0a07:000$((i + 1))" "$port"/gids/[0-3] && grep -q ACTIVE "$port/state"; do sleep 0.1; done
done
ulimit -l unlimited

status=0
"$@" </dev/null >>"$shared/out" 2>>"$shared/err" || status=$?
echo "$status" >"$shared/status"
