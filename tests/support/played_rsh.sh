#!/bin/sh
# Plays a program like rsh, for tests of `tutti run --agent`: it runs the words on this machine, whatever host is
# named. Like the script of the MPIJob operator, which calls `kubectl exec`, it traces its commands on stderr, gives the
# words to one shell, and has no stdin for them.
set -x
shift
exec sh -c "$*" <&-
