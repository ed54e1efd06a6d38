# shellcheck shell=sh
# Set the variables with which Horovod compiles for GPUs and NCCL; horovod.sh sources this file. SITE: site-packages.
# The compiler nvcc is in the wheels of CUDA 13, and in a Debian package in /build/extra for CUDA 11.
CUDA=/opt/cuda
if [ -x "$SITE/nvidia/cu13/bin/nvcc" ]; then
    # The wheels have NVIDIA's layout, but only versioned names of the libraries.
    cuda_libraries=$SITE/nvidia/cu13/lib
    mkdir -p "$CUDA/lib64"
    cp -r "$SITE/nvidia/cu13/bin" "$CUDA/"
    ln -s "$SITE/nvidia/cu13/include" "$SITE/nvidia/cu13/nvvm" "$CUDA/"
    for library in "$cuda_libraries"/*.so.* "$SITE"/nvidia/nccl/lib/libnccl.so.*; do
        ln -s "$library" "$CUDA/lib64/$(basename "${library%.so.*}").so"
    done
    ln -s "$cuda_libraries"/*.a "$CUDA/lib64/"
    ln -s lib64 "$CUDA/lib"
    # Every GPU that CUDA 13 knows, from Turing to Blackwell; the last also for later GPUs.
    export HOROVOD_BUILD_CUDA_CC_LIST=75,80,86,89,90,100,120
else
    cuda_libraries=$SITE/nvidia/cuda_runtime/lib
    mkdir -p /build/work/cuda
    dpkg-deb --extract /build/extra/nvidia-cuda-toolkit_*.deb /build/work/cuda
    (cd /build/work/cuda && PREFIX=$CUDA sh /build/parts/cuda.sh)
    # The newest compiler that nvcc 11.8 accepts.
    export CC=gcc-11 CXX=g++-11
    # Every GPU that CUDA 11 and this TensorFlow know, from Pascal to Hopper; the last also for later GPUs.
    export HOROVOD_BUILD_CUDA_CC_LIST=60,70,75,80,86,89,90
fi
export PATH="$CUDA/bin:$PATH" HOROVOD_CUDA_HOME="$CUDA"
export HOROVOD_GPU=CUDA HOROVOD_GPU_OPERATIONS=NCCL HOROVOD_NCCL_LINK=SHARED
export HOROVOD_NCCL_INCLUDE="$SITE/nvidia/nccl/include" HOROVOD_NCCL_LIB="$CUDA/lib64"
# The build removes the folder of CUDA after it has made the wheel; the libraries stay in site-packages.
export LDFLAGS="-Wl,-rpath,$cuda_libraries:$SITE/nvidia/nccl/lib"
