"""Combines the numbers of all processes. Each process gets the sums, the maxima, and all the numbers themselves.

    tutti run -n 4 -- python numpy_all_reduce.py

or by hand, in two terminals:
    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python numpy_all_reduce.py
    RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 python numpy_all_reduce.py
"""

import numpy

import tutti

# `init` blocks until all processes have arrived.
with tutti.init() as comm:
    mine = numpy.array([1, comm.rank, 10 * comm.rank], dtype="float32")

    # In place: the sums replace the input.
    sums = mine.copy()
    comm.all_reduce(sums).wait()

    # Out of place: the input stays unchanged. The program can compute before it waits.
    largest = numpy.empty_like(mine)
    work = comm.all_reduce(mine, largest, op="max")

    # The result has a row from each process.
    everybodys = numpy.empty((comm.size, 3), dtype="float32")
    comm.all_gather(mine, everybodys).wait()
    work.wait()

    assert (everybodys.sum(axis=0) == sums).all()
    assert (everybodys.max(axis=0) == largest).all()
    if comm.rank == 0:
        print(f"{comm.size} ranks: sums {sums.tolist()}, largest {largest.tolist()}")
