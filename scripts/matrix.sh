#!/usr/bin/env bash
# Build the images of the matrix, start them in every way, record what happens and write the page; $1 holds the programs,
# what follows is for tests.matrix.run. usage: matrix.sh BIN [OPTION…]
set -euo pipefail
bin=$1
shift
"$bin/python" -m tests.matrix.build
"$bin/python" -m tests.matrix.run "$@"
# The trainings have separate options: python -m tests.matrix.train --help
[ $# -gt 0 ] || "$bin/python" -m tests.matrix.train
"$bin/python" -m tests.matrix.table
