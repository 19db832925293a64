"""`python -m tutti rank` and `python -m tutti world_size` print this process's rank and the number
of ranks, for shell scripts. All other arguments are passed to the command `tutti`, which is part of
the package: `python -m tutti run -n 4 ...`."""

import os
import sys

from . import Error, _core


def main() -> int:
    arguments = sys.argv[1:]
    if arguments in (["rank"], ["world_size"]):
        try:
            rank, world_size = _core.placement()
        except Error as error:
            print(f"tutti: {error}", file=sys.stderr)
            return 2
        print(rank if arguments == ["rank"] else world_size)
        return 0
    command = os.path.join(os.path.dirname(__file__), "bin", "tutti")
    if not os.path.exists(command):
        print("usage: python -m tutti rank|world_size", file=sys.stderr)
        return 2
    os.execv(command, ["tutti", *arguments])


if __name__ == "__main__":
    sys.exit(main())
