#!/usr/bin/env bash
# Build the image of recipe $2 and its SIF with the toolkit in folder $1, unless both are up to date. Further arguments are
# options of `toolkit image solve`, such as --facts FILE or --site NAME, which select versions that work on a cluster.
set -euo pipefail
toolkit=$1/toolkit
recipe=$2
shift 2
name=$(basename "${recipe%.toml}")
sif=build/images/$name.sif
cd "$(dirname "$0")/.."

if [ $# -gt 0 ]; then
    mkdir -p build/recipes
    echo "\$ toolkit image solve $recipe $* -o build/recipes/$name.toml"
    "$toolkit" image solve "$recipe" "$@" -o "build/recipes/$name.toml"
    recipe=build/recipes/$name.toml
fi
echo "\$ toolkit image build $recipe"
"$toolkit" image build "$recipe"
echo "\$ toolkit image sif $recipe -o $sif"
"$toolkit" image sif "$recipe" -o "$sif"
