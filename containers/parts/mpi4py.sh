#!/bin/sh
# Compile mpi4py against the MPI whose mpicc comes first. Runs in its unpacked sources. WHEELS: where the wheel goes.
set -eu
# Its one large C file takes minutes and gigabytes at -O2 -g, for calls that only pass arguments on.
export CFLAGS="-O1 -g0" MPICC=mpicc
python -m pip wheel --no-index --no-deps --no-build-isolation --wheel-dir "$WHEELS" .
