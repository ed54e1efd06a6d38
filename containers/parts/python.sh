#!/bin/sh
# Install the wheels that the file $1 names with their hashes into the environment of the image; pip uses only /build.
set -eu
venv=/opt/toolkit/venv
[ -x "$venv/bin/python" ] || python3 -m venv --without-pip "$venv"
pip=$(ls /build/tools/pip-*.whl)
"$venv/bin/python" "$pip/pip" install --quiet --no-index --no-deps --no-compile --no-cache-dir \
    --root-user-action=ignore --disable-pip-version-check --require-hashes \
    --find-links /build/tools --find-links /build/wheels --requirement "$1"
