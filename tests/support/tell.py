"""Tests put the source of this file before each program that they interrupt. `tell` prints how a call ended, even if it raised."""

import os

import tutti


def tell(function, *arguments):
    try:
        os.write(1, b"ready\n")
        function(*arguments)
    except KeyboardInterrupt:
        print("KeyboardInterrupt", flush=True)
    except tutti.Error as error:
        print("tutti.Error", error.code, error.peer, error, flush=True)
    except BaseException as error:
        print(type(error).__name__, repr(str(error)), flush=True)
