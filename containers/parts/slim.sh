#!/bin/sh
# Take out of the image what only serves to compile, to test or to read about: headers, static libraries, tests,
# symbols that only a debugger reads. $1: site-packages.
set -eu
site=$1
# strip, from the package that the compiler came with; it is unpacked beside the image and not installed.
for package in /build/strip/*.deb; do dpkg-deb --extract "$package" /build/stripped; done
strip() {
    LD_LIBRARY_PATH=$(echo /build/stripped/usr/lib/*-linux-gnu) /build/stripped/usr/bin/strip --strip-unneeded "$@"
}
rm -rf "$site"/tensorflow/include "$site"/tensorflow/xla_aot_runtime_src "$site"/torch/include "$site"/torch/test
# Other packages may need theirs: jedi and lazy_loader read stubs, astropy imports its tests.
for package in tensorflow keras tf_keras numpy h5py opt_einsum mpi4py horovod setuptools pkg_resources; do
    [ -d "$site/$package" ] || continue
    find "$site/$package" -depth -type d \( -name tests -o -name testdata \) -exec rm -rf {} +
    find "$site/$package" -type f \( -name '*.pyi' -o -name '*.pxd' \) -delete
done
find "$site" /opt/mpi -type f \( -name '*.a' -o -name '*.la' -o -name '*.lib' \) -delete 2> /dev/null || true
rm -rf /opt/mpi/include /opt/mpi/share/man /opt/mpi/share/doc /opt/mpi/lib/pkgconfig /opt/mpi/lib/cmake
# Wheels whose libraries were renamed and patched can break when they are stripped; these are as compilers made them.
find "$site"/tensorflow "$site"/horovod "$site"/mpi4py /opt/mpi -type f \( -name '*.so' -o -name '*.so.*' \) 2> /dev/null |
    LC_ALL=C sort | while read -r library; do strip "$library"; done
