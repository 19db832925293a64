#!/bin/sh
# Runs a command on one of the hosts that bench/hosts.py makes:
#   on_host.sh --words PREFIX ADDRESS WORD...   runs the words as they are
#   on_host.sh --shell PREFIX ADDRESS WORD...   gives the words to a shell, as ssh does
# The last number of the address is the number of the host. The command sees its own host name.
how=$1 prefix=$2 host=${3##*.}
shift 3
if [ "$how" = --shell ]; then set -- sh -c "$*"; fi
# shellcheck disable=SC2016  # the inner shell expands these
exec ip netns exec "$prefix-$host" unshare --uts sh -c 'hostname "$0" && exec "$@"' "host$host" "$@"
