#!/usr/bin/env bash
# Write requirements/, with the version and SHA-256 of each package that toolkit (run.txt) and its checks (dev.txt) need.
# The files are valid for every Python and platform in pyproject.toml. The files contain no address of a package index,
# because each machine configures its own index.
set -euo pipefail
uv=$1/uv
cd "$(dirname "$0")/.."
mkdir -p requirements
resolve() { # resolve FILE WORDS...: let uv resolve pyproject.toml, and write the result to requirements/FILE
    local file=$1
    shift
    "$uv" pip compile pyproject.toml "$@" --upgrade --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet --output-file "requirements/$file"
}
resolve run.txt
# For packages that are in both files, dev.txt has the same versions as run.txt.
resolve dev.txt --extra dev --constraint requirements/run.txt
if grep -n '://' requirements/*.txt; then
    echo "requirements: the files contain the address of a package index" >&2
    exit 1
fi
