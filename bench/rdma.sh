#!/usr/bin/env bash
# Compares tutti with perftest on two RDMA devices of this machine, in one run: the latency of 8 bytes with `ib_send_lat`,
# and the bandwidth of 4 MiB with `ib_write_bw` and `ib_send_bw`. As tutti does, `ib_send_lat` and `ib_send_bw` wait for
# events. (`ib_write_bw` cannot do that: it keeps a processor busy.) All tools are from the package perftest.
#   rdma.sh BUILD [ROUNDS]   BUILD is a build folder, such as build/dev
# The devices are rxe0 and rxe1, as in the virtual machine (./dev vm bench/rdma.sh build/dev).
set -euo pipefail
build=$1 rounds=${2-3}
trips=1000 messages=50
export TUTTI_TRANSPORTS=verbs

# result COLUMN TOOL OPTION...  prints one column of the tool's row of results.
result() {
  local column=$1
  shift
  "$@" -F -d rxe1 >/dev/null &
  local server=$!
  # The server listens on port 18515, which is 4853 in hex. The state 0A means that a socket listens.
  until grep -qs ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6; do
    kill -0 "$server" || return 1
    sleep 0.1
  done
  if ! "$@" -F -d rxe0 10.7.0.2 | awk -v column="$column" '/^ *[0-9]+ +[0-9]+ / { print $column }'; then
    kill "$server"
    return 1
  fi
  wait "$server"
}

for ((round = 1; round <= rounds; round++)); do
  latency=$(result 5 ib_send_lat -e -s 8 -n "$trips")
  written=$(result 4 ib_write_bw -s 4194304 -n "$messages")
  sent=$(result 4 ib_send_bw -e -s 4194304 -n "$messages")
  # shellcheck disable=SC2016  # the inner shell expands this
  ours=$("$build/bin/tutti" run -n 2 -- sh -c 'TUTTI_IB_HCA="=rxe$TUTTI_RANK" exec "$@"' sh "$build/bin/perf/rdma" "$trips" "$messages")
  awk -v round="$round" -v latency="$latency" -v written="$written" -v sent="$sent" -v ours="$ours" 'BEGIN {
    split(ours, tutti)
    printf "round %d: 8 bytes: tutti %.1f us, ib_send_lat %.1f us: ratio %.2f\n", round, tutti[2], latency, tutti[2] / latency
    printf "round %d: 4 MiB: tutti %.1f MiB/s, ib_write_bw %.1f: ratio %.2f; ib_send_bw %.1f: ratio %.2f\n", round,
      tutti[3], written, tutti[3] / written, sent, tutti[3] / sent }'
done
