#!/bin/sh
# Compile Open MPI on the UCX and PMIx in PREFIX. Runs in its unpacked sources; the words of the call go to configure.
# PREFIX: where to; JOBS: at once.
set -eu
# The folders of a multi-architecture system, which configure does not search by itself for libpmi.
libraries=$(gcc -print-multiarch)
./configure --prefix="$PREFIX" --with-pmix="$PREFIX" --with-ucx="$PREFIX" --disable-static --enable-wrapper-rpath \
    --disable-man-pages --with-pmi-libdir="/usr/lib/$libraries" "$@"
make -j "$JOBS"
make install
