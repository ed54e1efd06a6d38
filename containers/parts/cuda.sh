#!/bin/sh
# Make one folder for compiling for GPUs, with the layout of NVIDIA's installer. Runs in Debian's unpacked package
# nvidia-cuda-toolkit, which has nvcc; installing it would add 3 GB. Headers and libraries come from the wheels.
# PREFIX: the folder; SITE: site-packages.
set -eu
nvidia=$SITE/nvidia
mkdir -p "$PREFIX/bin" "$PREFIX/include" "$PREFIX/lib64" "$PREFIX/nvvm/bin"
for tool in bin2c cudafe++ fatbinary nvlink ptxas; do cp "usr/bin/$tool" "$PREFIX/bin/"; done
cp -r usr/lib/nvidia-cuda-toolkit/bin/nvcc usr/lib/nvidia-cuda-toolkit/bin/crt "$PREFIX/bin/"
cp usr/lib/nvidia-cuda-toolkit/bin/cicc "$PREFIX/nvvm/bin/"
cp -r usr/lib/nvidia-cuda-toolkit/libdevice "$PREFIX/nvvm/"
# nvcc's own words, not the shell's.
# shellcheck disable=SC2016
printf '%s\n' 'TOP = $(_HERE_)/..' 'NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice' \
    'LD_LIBRARY_PATH += $(TOP)/lib64:' 'PATH += $(TOP)/nvvm/bin:$(_HERE_):' 'INCLUDES += "-I$(TOP)/include" $(_SPACE_)' \
    'LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib64"' 'CUDAFE_FLAGS +=' 'PTXAS_FLAGS +=' > "$PREFIX/bin/nvcc.profile"
for part in cuda_runtime cuda_nvcc; do cp -r "$nvidia/$part"/include/* "$PREFIX/include/"; done
ln -s "$nvidia"/cuda_runtime/lib/libcudart.so.* "$PREFIX/lib64/libcudart.so"
ln -s "$nvidia"/nccl/lib/libnccl.so.* "$PREFIX/lib64/libnccl.so"
# nvcc links the static runtime by name, which is in those 3 GB only; the name leads to the shared one, which
# TensorFlow loads too. Nothing here needs the runtime of device code.
echo 'INPUT(-lcudart)' > "$PREFIX/lib64/libcudart_static.a"
ar rc "$PREFIX/lib64/libcudadevrt.a"
