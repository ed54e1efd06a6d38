#!/usr/bin/env bash
# Run the unit tests with Debian's python3 and with the newest Python on this machine, if they differ from the Python in the
# environment $1. Each Python has an environment in build/pythons. A change of the locked packages rebuilds the environment.
set -euo pipefail
venv=$1
cd "$(dirname "$0")/.."

version() { "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2> /dev/null; }
supported() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; }

newest() { # print the path of the Python with the highest version on this machine
    local python
    for python in /usr/bin/python3.1? /usr/local/bin/python3.1? "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do
        if [ -x "$python" ] && supported "$python"; then echo "$(version "$python") $python"; fi
    done | sort -V | tail -n 1 | cut -d' ' -f2
}

tested=$(version "$venv/bin/python")
for python in /usr/bin/python3 "$(newest)"; do
    if [ -z "$python" ] || ! [ -x "$python" ] || ! supported "$python"; then
        echo "unit: ${python:-another Python} is missing or older than 3.11; skipped"
        continue
    fi
    number=$(version "$python")
    case " $tested " in *" $number "*) continue ;; esac
    tested="$tested $number"
    place=build/pythons/$number
    if ! cmp -s requirements/dev.txt "$place/requirements.txt"; then
        rm -rf "$place"
        "$venv/bin/uv" venv --quiet --python "$python" "$place"
        "$venv/bin/uv" pip install --quiet --python "$place" --require-hashes --requirement requirements/dev.txt
        "$venv/bin/uv" pip install --quiet --python "$place" --no-deps --no-build-isolation --editable .
        cp requirements/dev.txt "$place/requirements.txt"
    fi
    echo "unit: Python $number"
    TOOLKIT_THOROUGH=1 "$place/bin/python" -m pytest tests/unit -n auto --dist worksteal -q
done
echo "unit: ran under Python ${tested// /, }"
