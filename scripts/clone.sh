#!/usr/bin/env bash
# Run a command as work of this clone: its objects in the Docker engine are marked, and `make clean` removes
# only marked objects.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# Random and kept: a path says nothing on an engine that machines or containers share.
if [ ! -s "$here/.toolkit-clone" ]; then
    umask 022
    head -c 6 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$here/.toolkit-clone.$$"
    mv -n "$here/.toolkit-clone.$$" "$here/.toolkit-clone"
    rm -f "$here/.toolkit-clone.$$"
fi
TOOLKIT_CLONE=$(cat "$here/.toolkit-clone")
TOOLKIT_MADE=$here/build/made.images
mkdir -p "$here/build"
export TOOLKIT_CLONE TOOLKIT_MADE
exec "$@"
