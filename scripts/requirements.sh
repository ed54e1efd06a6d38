#!/usr/bin/env bash
# Write requirements/: each package that toolkit (run.txt) and its checks (dev.txt) need, by version and SHA-256. The files
# hold for every Python and platform that pyproject.toml allows, and name no address: where packages come from is a matter
# of the machine.
set -euo pipefail
uv=$1/uv
cd "$(dirname "$0")/.."
mkdir -p requirements
resolve() { # resolve FILE WORDS...: what uv makes of pyproject.toml
    local file=$1
    shift
    "$uv" pip compile pyproject.toml "$@" --upgrade --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet --output-file "requirements/$file"
}
resolve run.txt
# The same versions if both need a package.
resolve dev.txt --extra dev --constraint requirements/run.txt
if grep -n '://' requirements/*.txt; then
    echo "requirements: an address was written" >&2
    exit 1
fi
