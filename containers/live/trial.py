"""Try MPI in an image with Python; each rank runs ``python3 trial.py LIBRARY TASKS SECONDS``.

The program loads the MPI library at run time, so it needs no compiler and no mpi4py. It works with the ABIs
of Open MPI and MPICH, and runs with Python 3.4 and newer. toolkit.launch.live reads its output; trial.c
prints the same output in images without Python.
"""

# The Python of old images does not support newer syntax.
# ruff: noqa: ANN001, ANN002, ANN201, ANN202, ANN204, UP032

import array
import ctypes
import os
import signal
import sys

SIZES = ((8, 400), (64, 400), (1024, 300), (16384, 100), (262144, 30), (4194304, 8))
"""The size of a message in bytes, and the number of round trips. Only the fastest round trip counts, because
other processes slow some round trips down.
"""

WARM, FEWEST, BUDGET = 1, 1, 1.0
"""The number of first round trips that do not count, the minimum number of round trips, and the time limit in
seconds for one message size.
"""

GO, STOP = b"\x5a", b"\x00"
NUMBERS = 65536
NAME = 256
LIBRARY_VERSION = 8192
WRONG_SUM, NOT_LOADED = 4, 5


def say(text):
    # Each line is one write, so that the lines of two ranks do not mix.
    os.write(1, ("live: " + text + "\n").encode())


class Mpi:
    """The calls of an MPI library, and the handles of its ABI."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        if hasattr(self.library, "ompi_mpi_comm_world"):
            self.world = self._address("ompi_mpi_comm_world")
            self.byte = self._address("ompi_mpi_byte")
            self.double = self._address("ompi_mpi_double")
            self.sum = self._address("ompi_mpi_op_sum")
            self.ignore = ctypes.c_void_p(0)
        else:
            # The MPICH ABI initiative fixes these numbers (mpi.h of every MPICH since 3.1).
            self.world = ctypes.c_int(0x44000000)
            self.byte = ctypes.c_int(0x4C00010D)
            self.double = ctypes.c_int(0x4C00080B)
            self.sum = ctypes.c_int(0x58000003)
            self.ignore = ctypes.c_void_p(1)

    def _address(self, name):
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self.library, name)))

    def call(self, name, *arguments):
        if not hasattr(self.library, name):
            say("cannot load " + name)
            sys.exit(NOT_LOADED)
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            say("error {} returned {}".format(name, status))
            sys.exit(1)

    def number(self, name):
        value = ctypes.c_int(-1)
        self.call(name, self.world, ctypes.byref(value))
        return value.value

    def text(self, name, most):
        buffer, length = ctypes.create_string_buffer(most), ctypes.c_int(0)
        self.call(name, buffer, ctypes.byref(length))
        return buffer.value.decode("utf-8", "replace")

    def seconds(self):
        self.library.MPI_Wtime.restype = ctypes.c_double
        return self.library.MPI_Wtime()

    def send(self, buffer, size, to):
        self.call(
            "MPI_Send", buffer, ctypes.c_int(size), self.byte, ctypes.c_int(to), ctypes.c_int(1), self.world
        )

    def receive(self, buffer, size, source):
        self.call(
            "MPI_Recv",
            buffer,
            ctypes.c_int(size),
            self.byte,
            ctypes.c_int(source),
            ctypes.c_int(1),
            self.world,
            self.ignore,
        )


def sum_is_right(mpi, rank, size):
    """Return whether MPI_Allreduce adds the numbers of all ranks correctly. Each rank sends 512 KiB, because
    MPI sends a few bytes with another protocol.
    """
    sent, got = array.array("d", [rank + 1.0]) * NUMBERS, array.array("d", [0.0]) * NUMBERS
    at = ctypes.c_void_p(sent.buffer_info()[0]), ctypes.c_void_p(got.buffer_info()[0])
    mpi.call("MPI_Allreduce", at[0], at[1], ctypes.c_int(NUMBERS), mpi.double, mpi.sum, mpi.world)
    return all(number == size * (size + 1) / 2 for number in got)


def names_of_all(mpi, host, size):
    mine = ctypes.create_string_buffer(host.encode()[: NAME - 1], NAME)
    every = ctypes.create_string_buffer(NAME * size)
    count = ctypes.c_int(NAME)
    mpi.call("MPI_Allgather", mine, count, mpi.byte, every, count, mpi.byte, mpi.world)
    return [every.raw[NAME * i : NAME * (i + 1)].split(b"\0")[0] for i in range(size)]


def ping_pong(mpi, rank, peer, kind):
    """Send messages from rank 0 to a peer and back, and print the seconds for one direction.

    The first byte tells the peer whether another message follows, because the number of
    messages depends on rank 0's clock.
    """
    for size, times in SIZES:
        out, back = ctypes.create_string_buffer(GO * size, size), ctypes.create_string_buffer(size)
        best, begun, turn, last = 1e9, mpi.seconds(), 0, False
        while not last:
            started = mpi.seconds()
            if rank == 0:
                last = turn >= times or (turn >= FEWEST and started - begun > BUDGET)
                out[0] = STOP if last else GO
                mpi.send(out, size, peer)
                mpi.receive(back, size, peer)
            else:
                mpi.receive(back, size, 0)
                mpi.send(back, size, 0)
                last = back[0] == STOP
            if turn >= WARM:  # do not count the first messages, which open connections
                best = min(best, mpi.seconds() - started)
            turn += 1
        if rank == 0:
            whole = "whole" if back.raw == out.raw else "damaged"
            say("pingpong {} {} {:.9f} {}".format(kind, size, best / 2, whole))


def main(path, tasks, seconds):
    signal.alarm(seconds)
    try:
        mpi = Mpi(path)
    except OSError as error:
        say("cannot load {}: {}".format(path, error))
        return NOT_LOADED
    mpi.call("MPI_Init", None, None)
    rank, size = mpi.number("MPI_Comm_rank"), mpi.number("MPI_Comm_size")
    host = mpi.text("MPI_Get_processor_name", NAME)
    say("rank {} of {} on {}".format(rank, size, host))
    status = 0
    if rank == 0:
        told = mpi.text("MPI_Get_library_version", LIBRARY_VERSION).strip("\0\n ").splitlines()
        say("program python")
        say("library {}".format(" ".join(told[0].split()) if told else "says nothing"))
    if size == tasks:
        right = sum_is_right(mpi, rank, size)
        say("rank {} sum {}".format(rank, "right" if right else "wrong"))
        status = 0 if right else WRONG_SUM
        hosts = names_of_all(mpi, host, size)
        far = next((i for i in range(size) if hosts[i] != hosts[0]), 0)
        near = next((i for i in range(1, size) if hosts[i] == hosts[0]), 0)
        for kind, peer in (("nodes", far), ("node", near)):
            if peer and rank in (0, peer):
                ping_pong(mpi, rank, peer, kind)
            mpi.call("MPI_Barrier", mpi.world)
    # With a wrong world size, the program still exits with 0, so that every rank can report its size.
    mpi.call("MPI_Finalize")
    say("rank {} end".format(rank))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
