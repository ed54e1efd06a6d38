#!/bin/sh
# Compile the component $1 from the archive $2 in /build/sources by its own part; the other words go to that part.
# The result is in /build/compiled: a wheel, or a tar of the installed files. JOBS: number of parallel compilers.
# Times and paths are fixed, so that the same sources give the same bytes.
set -eu
component=$1 archive=$2
shift 2
export PREFIX=/opt/mpi WHEELS=/build/compiled LC_ALL=C.UTF-8 TZ=UTC SOURCE_DATE_EPOCH=315532800 PYTHONHASHSEED=0
export PATH="/opt/toolkit/venv/bin:$PREFIX/bin:$PATH" LD_LIBRARY_PATH="$PREFIX/lib"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1
mkdir -p /build/compiled /build/wheels "/build/work/$component"
for tree in /build/compiled/*.tar; do
    if [ -f "$tree" ]; then tar -xf "$tree" -C /; fi
done
if [ -f "/build/requirements/$component.txt" ]; then
    sh /build/parts/python.sh "/build/requirements/$component.txt"
    SITE=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    export SITE
fi
tar -xf "/build/sources/$archive" --strip-components=1 -C "/build/work/$component"
cd "/build/work/$component"
for file in "/build/patches/$component"-*.patch; do
    if [ -f "$file" ]; then patch -p1 -i "$file"; fi
done
sh "/build/parts/$component.sh" "$@"
cd /
rm -rf "/build/work/$component"
if ! ls "/build/compiled/$component"-*.whl > /dev/null 2>&1; then
    # Later parts may need headers; the finished image drops them.
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        -cf "/build/compiled/$component.tar" "${PREFIX#/}"
fi
