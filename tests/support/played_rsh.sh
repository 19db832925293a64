#!/bin/sh
# This script imitates a program like rsh, for tests of `tutti run --agent`. It ignores the name of
# the host, and runs the words on this machine. It behaves like the script of the MPIJob operator,
# which calls `kubectl exec`. Like that script, it traces its commands on stderr, gives the words to
# one shell, and provides no stdin.
set -x
shift
exec sh -c "$*" <&-
