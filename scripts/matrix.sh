#!/usr/bin/env bash
# Build the images of tests/matrix, start them in every launch mode, record the results, and write docs/matrix.md.
# Usage: matrix.sh BIN [OPTION…]. BIN is the environment's bin folder; the options are for tests.matrix.run.
set -euo pipefail
bin=$1
shift
"$bin/python" -m tests.matrix.build
"$bin/python" -m tests.matrix.run "$@"
# tests.matrix.train has other options, so run it only if this script got no options.
[ $# -gt 0 ] || "$bin/python" -m tests.matrix.train
"$bin/python" -m tests.matrix.table
