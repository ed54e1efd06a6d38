#!/usr/bin/env bash
# Run a command with a label for the images and containers that it creates in the Docker engine. `make clean` removes only
# objects with the label of this clone.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# The label is a random number in a file. A path would not be unique if several machines or containers share the engine.
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
