#!/bin/sh
# Compile UCX. Runs in its unpacked sources; the words of the call go to configure. PREFIX: where to; JOBS: at once.
set -eu
# Debian renames upstream's folder "debian", because its own folder has this name; configure needs upstream's folder.
if [ -d debian.upstream ] && [ ! -d debian ]; then mv debian.upstream debian; fi
[ -x configure ] || ./autogen.sh
./contrib/configure-release --prefix="$PREFIX" --disable-static "$@"
make -j "$JOBS"
make install
