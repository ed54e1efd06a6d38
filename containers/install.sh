#!/bin/sh
# Install toolkit from this bundle, without a network: check every file of the bundle, make a virtual environment,
# and install the wheels, the build packages and the images.
set -eu

usage() {
    echo "usage: sh install.sh [--prefix DIR] [--python PYTHON] [--replace]"
    echo "  --prefix DIR      where toolkit is installed (default: ~/.local/toolkit)"
    echo "  --python PYTHON   the Python to use (default: the first that the bundle has wheels for)"
    echo "  --replace         also install recipes that replace a recipe of yours or of toolkit"
}

fail() {
    echo "install: $1" >&2
    [ -z "${2:-}" ] || echo "  fix: $2" >&2
    exit "${3:-3}"
}

prefix=${HOME:-}/.local/toolkit
python=
replace=
while [ $# -gt 0 ]; do
    case $1 in
        --prefix | --python)
            [ $# -gt 1 ] || fail "$1 needs a value" "" 2
            case $1 in --prefix) prefix=$2 ;; *) python=$2 ;; esac
            shift 2
            ;;
        --replace)
            replace=--replace
            shift
            ;;
        -h | --help)
            usage
            exit 0
            ;;
        *) fail "$1: no such option" "sh install.sh --help" 2 ;;
    esac
done

cd "$(dirname "$0")"
[ -f SHA256SUMS ] || fail "SHA256SUMS is not here" "unpack the whole bundle: tar xf BUNDLE.tar"
echo "install: checking $(wc -l < SHA256SUMS) files"
if ! LC_ALL=C sha256sum -c SHA256SUMS > sums.log 2>&1; then
    grep -v ': OK$' sums.log >&2 || true
    rm -f sums.log
    fail "the bundle is damaged" "copy it again, and compare it with its .sha256" 1
fi
rm -f sums.log
# pip installs any wheel in the folder, so each wheel must be in the list of hashes.
for wheel in wheels/*; do
    cut -c 67- SHA256SUMS | grep -qxF -e "$wheel" \
        || fail "$wheel is not listed in SHA256SUMS" "unpack the bundle again, into an empty folder" 2
done

# The Python versions for which the bundle has wheels. bundle.json has them as ["3.11","3.12"], on one or several lines.
versions=$(tr -d ' \n' < bundle.json | sed -n 's/.*"pythons":\[\([^]]*\)\].*/\1/p' | tr -d '"' | tr ',' ' ')
fits() {
    found=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null) || return 1
    case " $versions " in *" $found "*) return 0 ;; *) return 1 ;; esac
}
if [ -n "$python" ]; then
    fits "$python" || fail "$python is not one of the Pythons of this bundle: $versions" "name another with --python"
else
    for version in $versions; do
        for candidate in "python$version" python3; do
            [ -n "$python" ] || ! fits "$candidate" || python=$candidate
        done
    done
    [ -n "$python" ] || fail "no Python $versions on PATH" "install one, or name it with --python"
fi

echo "install: installing toolkit into $prefix with $("$python" --version)"
"$python" -m venv "$prefix" || fail "$python cannot make $prefix" "on Debian: apt-get install python3-venv"
"$prefix/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links wheels --upgrade hpc-container-toolkit
"$prefix/bin/toolkit" image unbundle . $replace
[ ! -x "${HOME:-}/toolkit/bin/toolkit" ] || echo "install: an older toolkit is in $HOME/toolkit/bin"
echo "install: done: $prefix/bin/toolkit --help"
