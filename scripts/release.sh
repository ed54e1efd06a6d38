#!/usr/bin/env bash
# Release the version in toolkit/__init__.py: check it, build the sdist and the wheel, test the wheel in a separate
# environment, and create the annotated tag. DRY=1 does everything but the tag. $1 is the environment's bin folder.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(realpath -s "$1")
out=build/release

say() { echo "release: $*"; }
fail() { # fail WHAT FIX: print an error and its fix, and exit
    echo "error: $1" >&2
    echo "hint: $2" >&2
    exit 1
}
clean() { [ -z "$(git status --porcelain)" ]; }

clean || fail "the work tree has changes that are not committed" "commit or stash them; \`git status\` lists them"

version=$("$bin/python" -m hatchling version)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "$version is not a version like 1.2.3" "edit toolkit/__init__.py"
last=$(git tag --list 'v*' --sort=-version:refname | head -n 1)
if [ -n "$last" ]; then
    newest=$(printf '%s\n' "${last#v}" "$version" | sort -V | tail -n 1)
    if [ "$version" = "${last#v}" ] || [ "$version" != "$newest" ]; then
        fail "$version is not newer than the last release, $last" "raise __version__ in toolkit/__init__.py"
    fi
fi
"$bin/python" -m docs.generate.changelog "$version" \
    || fail "CHANGELOG.md does not describe $version" "complete its section \`## $version - YYYY-MM-DD\`"

say "making the generated pages"
written=$("$bin/python" -m docs.generate.released)
if ! clean; then
    fail "$(wc -l <<< "$written") generated files were out of date and are written now" \
        "git commit --all --message 'docs: make the pages of $version' && make release"
fi

say "building $version"
rm -rf "$out"
mkdir -p "$out"
# Give all files in the archives the time of the commit, so that a rebuild gives identical archives.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
"$bin/python" -m hatchling build -t sdist -d "$out" 2> /dev/null
# Build the wheel from the sdist, so that both have the same content.
"$bin/python" -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --wheel-dir "$out" \
    "$out"/*.tar.gz 2> "$out/log" || { cat "$out/log" >&2; exit 1; }
rm -f "$out/log"
sdist=$(echo "$out"/*-"$version".tar.gz)
wheel=$(echo "$out"/*-"$version"-*.whl)
{ [ -f "$sdist" ] && [ -f "$wheel" ]; } || fail "the build left no sdist and wheel of $version in $out" "see what hatchling says"

say "installing $(basename "$wheel") into a separate environment"
trial=$(mktemp -d)
trap 'rm -rf "$trial"' EXIT
"$bin/python" -m venv "$trial/venv"
"$trial/venv/bin/python" -m pip --disable-pip-version-check install --quiet --only-binary :all: "$wheel" \
    2> "$trial/log" || { cat "$trial/log" >&2; exit 1; }
mkdir "$trial/home"
tried() { (cd "$trial/home" && env -i HOME="$trial/home" PATH=/usr/bin:/bin "$trial/venv/bin/toolkit" "$@"); }
said=$(tried --version)
[ "${said##* }" = "$version" ] || fail "the installed program says '$said'" "build again, and check that $wheel is from this commit"
tried --help > /dev/null
tried image render tf2.21-cpu > "$trial/Dockerfile"
grep -q '^FROM ' "$trial/Dockerfile" || fail "\`toolkit image render\` of the wheel wrote no Dockerfile" "run it in $trial"

if [ -n "${DRY:-}" ]; then
    say "$version is ready in $out; DRY=1 makes no tag"
else
    git tag --annotate "v$version" --message "toolkit $version"
    say "$version is ready in $out, and the tag v$version is made; to publish it: git push origin v$version"
fi
