#!/bin/sh
# Compile PMIx. Runs in its unpacked sources; the words of the call go to configure. PREFIX: where to; JOBS: at once.
set -eu
[ -x configure ] || ./autogen.pl
./configure --prefix="$PREFIX" --disable-static --disable-man-pages "$@"
make -j "$JOBS"
make install
