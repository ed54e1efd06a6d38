#!/bin/sh
# Compile Horovod against the TensorFlow or PyTorch that python sees and the MPI whose mpicxx comes first. Runs in its unpacked
# sources; the words of the call are its operations: mpi, gloo, nccl. WHEELS: where the wheel goes; JOBS: at once;
# with nccl also SITE: site-packages, and nvcc in a package in /build/extra.
set -eu
operations=" $* "
with() { case $operations in *" $1 "*) echo WITH ;; *) echo WITHOUT ;; esac; }
has() { if python -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)"; then echo WITH; else echo WITHOUT; fi; }
export MAKEFLAGS="-j$JOBS" HOROVOD_WITHOUT_MXNET=1
export "HOROVOD_$(has tensorflow)_TENSORFLOW=1" "HOROVOD_$(has torch)_PYTORCH=1"
export "HOROVOD_$(with mpi)_MPI=1" "HOROVOD_$(with gloo)_GLOO=1"
# Otherwise the processor of the machine that compiles would decide; TensorFlow's own wheels ask for as much.
case $(uname -m) in x86_64) export HOROVOD_BUILD_ARCH_FLAGS="-mavx -mf16c -mfma" ;; esac
if [ "$(with nccl)" = WITH ]; then
    CUDA=/opt/cuda
    mkdir -p /build/work/cuda
    dpkg-deb --extract /build/extra/nvidia-cuda-toolkit_*.deb /build/work/cuda
    (cd /build/work/cuda && PREFIX=$CUDA sh /build/parts/cuda.sh)
    # The newest that nvcc 11.8 takes.
    export CC=gcc-11 CXX=g++-11
    # Every GPU that CUDA 11 and this TensorFlow know, from Pascal to Hopper; the last also for what comes later.
    export PATH="$CUDA/bin:$PATH" HOROVOD_CUDA_HOME="$CUDA" HOROVOD_BUILD_CUDA_CC_LIST=60,70,75,80,86,89,90
    export HOROVOD_GPU=CUDA HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_NCCL_LINK=SHARED
    export HOROVOD_NCCL_INCLUDE="$SITE/nvidia/nccl/include" HOROVOD_NCCL_LIB="$CUDA/lib64"
    # The folder of CUDA goes when the wheel is made; what it stood for stays in site-packages.
    export LDFLAGS="-Wl,-rpath,$SITE/nvidia/cuda_runtime/lib:$SITE/nvidia/nccl/lib"
fi
python -m pip wheel --no-index --no-deps --no-build-isolation --wheel-dir "$WHEELS" .
