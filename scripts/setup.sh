#!/usr/bin/env bash
# Make the virtual environment in $1 and, as root on Debian or Ubuntu, install the packages that are missing.
set -euo pipefail
venv=$1
cd "$(dirname "$0")/.."

# program:package, what each is for stands behind it
needed=(
    docker:docker.io           # builds images, runs the virtual cluster
    dockerd:docker.io
    mmdebstrap:mmdebstrap      # base image where no registry answers
    ssh:openssh-client         # toolkit cluster shell
    shellcheck:shellcheck      # make test
    strace:strace              # make test counts file-system calls
)

missing=()
for entry in "${needed[@]}"; do
    command -v "${entry%%:*}" > /dev/null || missing+=("${entry##*:}")
done
python3 -c 'import ensurepip, venv' 2> /dev/null || missing+=(python3-venv)

if [ "${#missing[@]}" -gt 0 ]; then
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
    if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
        echo "setup: installing Debian packages: ${missing[*]}"
        log=$(mktemp)
        trap 'rm -f "$log"' EXIT
        # DPkg::Lock::Timeout waits for another apt-get instead of failing beside it.
        if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            -o DPkg::Lock::Timeout=300 "${missing[@]}"; } > "$log" 2>&1; then
            tail -n 15 "$log" >&2
            echo "setup: apt-get could not install: ${missing[*]}" >&2
            exit 3
        fi
    else
        echo "setup: these programs are missing; on Debian or Ubuntu:" >&2
        echo "    sudo apt-get install ${missing[*]}" >&2
        # An engine that answers is enough for the demo; what else is missing is told when it is needed.
        if ! docker version > /dev/null 2>&1 || ! python3 -c 'import ensurepip' 2> /dev/null; then
            exit 3
        fi
    fi
fi

python=
for candidate in python3 python3.13 python3.12 python3.11; do
    # A name on PATH may be a shim that starts nothing, so it is tried.
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "setup: Python 3.11 or later is needed, and python3 is $(python3 --version 2>&1 || echo absent)" >&2
    echo "  fix: install it (apt-get install python3), or load its module" >&2
    exit 3
fi

if [ ! -x "$venv/bin/python" ]; then
    echo "setup: making the virtual environment $venv with $("$python" --version)"
    "$python" -m venv "$venv"
fi
echo "setup: installing toolkit and its tools into $venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev]' 2> >(grep -v '^WARNING: Location' >&2)
touch "$venv/ready"
