#!/bin/sh
# Compile Horovod against the TensorFlow or PyTorch that python sees and the MPI whose mpicxx comes first. Runs in its unpacked
# sources; the words of the call are its operations: mpi, gloo, nccl. WHEELS: where the wheel goes; JOBS: at once.
set -eu
operations=" $* "
with() { case $operations in *" $1 "*) echo WITH ;; *) echo WITHOUT ;; esac; }
has() { if python -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)"; then echo WITH; else echo WITHOUT; fi; }
export MAKEFLAGS="-j$JOBS" HOROVOD_WITHOUT_MXNET=1
export "HOROVOD_$(has tensorflow)_TENSORFLOW=1" "HOROVOD_$(has torch)_PYTORCH=1"
export "HOROVOD_$(with mpi)_MPI=1" "HOROVOD_$(with gloo)_GLOO=1"
# Otherwise the processor of the machine that compiles would decide; TensorFlow's own wheels ask for as much.
case $(uname -m) in x86_64) export HOROVOD_BUILD_ARCH_FLAGS="-mavx -mf16c -mfma" ;; esac
if [ "$(with nccl)" = WITH ]; then . /build/parts/nccl.sh; fi
python -m pip wheel --no-index --no-deps --no-build-isolation --wheel-dir "$WHEELS" .
