#!/usr/bin/env bash
# Run the checks and the unit tests while the images of the smoke tests are built; then run the smoke tests.
set -euo pipefail
cd "$(dirname "$0")/.."
make=${MAKE:-make}

# A failed build fails again in the smoke tests, which show its whole output.
mkdir -p build
set -m # gives the build a process group, which can be ended as a whole
"$make" --no-print-directory prepared > build/prepared.log 2>&1 < /dev/null &
build=$!
set +m
trap 'kill -- "-$build" 2> /dev/null && wait "$build" || true' EXIT
trap 'exit 130' INT TERM HUP

"$make" --no-print-directory check unit
wait "$build" || echo "test: not all could be built beforehand; see build/prepared.log"
"$make" --no-print-directory smoke
