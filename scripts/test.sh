#!/usr/bin/env bash
# Build the images for the smoke tests in the background, run the checks and the unit tests, and then the smoke tests.
set -euo pipefail
cd "$(dirname "$0")/.."
make=${MAKE:-make}

# A failed build is not an error here, because the smoke tests build again and print the whole output.
mkdir -p build
set -m # the build gets a separate process group, so that a signal reaches all its processes
"$make" --no-print-directory prepared > build/prepared.log 2>&1 < /dev/null &
build=$!
set +m
trap 'kill -- "-$build" 2> /dev/null && wait "$build" || true' EXIT
trap 'exit 130' INT TERM HUP

"$make" --no-print-directory check unit
wait "$build" || echo "test: some images could not be built in advance; see build/prepared.log"
"$make" --no-print-directory smoke
