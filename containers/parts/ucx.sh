#!/bin/sh
# Compile UCX. Runs in its unpacked sources; the words of the call go to configure. PREFIX: where to; JOBS: at once.
set -eu
# Debian renames upstream's folder so that its own can stand there, and configure looks for upstream's.
if [ -d debian.upstream ] && [ ! -d debian ]; then mv debian.upstream debian; fi
[ -x configure ] || ./autogen.sh
./contrib/configure-release --prefix="$PREFIX" --disable-static "$@"
make -j "$JOBS"
make install
