"""The tests prepend this file to the source of the programs that they interrupt. `tell` prints
"ready", makes a call, and prints the exception that ends the call."""

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
