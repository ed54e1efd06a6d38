#!/usr/bin/env bash
# Build the image of recipe $2 and its SIF with the toolkit of $1; both are reused where nothing changed.
set -euo pipefail
toolkit=$1/toolkit
recipe=$2
sif=build/images/$(basename "${recipe%.toml}").sif
cd "$(dirname "$0")/.."

echo "\$ toolkit image build $recipe"
"$toolkit" image build "$recipe"
echo "\$ toolkit image sif $recipe -o $sif"
"$toolkit" image sif "$recipe" -o "$sif"
