#!/usr/bin/env bash
# Create the virtual environment $1. As root on Debian or Ubuntu, also install the Debian packages that are missing.
set -euo pipefail
venv=$1
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin # dockerd is in these folders, which are not on the PATH of ordinary users

# Run one setup at a time, because two setups would install into the same environment.
mkdir -p build
exec 8> build/.setup.lock
flock --exclusive 8

# program:package  # purpose
needed=(
    docker:docker.io           # builds images, runs the virtual cluster
    dockerd:docker.io
    gpg:gnupg                  # signs images and checks their signatures
    mmdebstrap:mmdebstrap      # builds the base image if no registry answers
    npm:npm                    # downloads the data sets if their publishers do not answer
    ssh:openssh-client         # toolkit cluster shell
    shellcheck:shellcheck      # make test
    busybox:busybox            # make test runs the probe in its shell
    strace:strace              # make test counts file-system calls
    unsquashfs:squashfs-tools  # make test reads an environment file with it
)
# make test-package opens the documentation site with Chromium. Ubuntu has Chromium only as a snap.
if [ "$(id -u)" = 0 ] && grep -qsx 'ID=debian' /etc/os-release; then
    needed+=(chromium:chromium)
fi

python=
for candidate in python3 python3.13 python3.12 python3.11; do
    # A python on PATH may be a shim (a wrapper) that finds no Python, so run it.
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "error: toolkit needs Python 3.11 or later; python3 is $(python3 --version 2>&1 || echo absent)" >&2
    echo "hint: install Python (Debian 12, Ubuntu 24.04: apt-get install python3), or load a module with a newer Python" >&2
    exit 3
fi

missing=()
for entry in "${needed[@]}"; do
    command -v "${entry%%:*}" > /dev/null || missing+=("${entry##*:}")
done
"$python" -c 'import ensurepip, venv' 2> /dev/null || missing+=(python3-venv)

if [ "${#missing[@]}" -gt 0 ]; then
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
    if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
        echo "setup: installing Debian packages: ${missing[*]}"
        log=$(mktemp)
        trap 'rm -f "$log"' EXIT
        # With DPkg::Lock::Timeout, apt-get waits for another apt-get instead of failing.
        if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            -o DPkg::Lock::Timeout=300 "${missing[@]}"; } > "$log" 2>&1; then
            tail -n 15 "$log" >&2
            echo "setup: apt-get could not install: ${missing[*]}" >&2
            exit 3
        fi
        if [[ " ${missing[*]} " == *" docker.io "* ]] && [ -d /run/systemd/system ]; then
            echo "setup: docker.io starts a Docker engine as root at every boot; to prevent this: systemctl disable --now docker"
        fi
    else
        echo "setup: not installed: ${missing[*]}" >&2
        echo "  on Debian or Ubuntu: sudo apt-get install ${missing[*]}" >&2
        # To start, the demo needs only a Docker engine and Python. Later steps report the programs that are missing.
        if ! timeout 10 docker version > /dev/null 2>&1 || ! "$python" -c 'import ensurepip' 2> /dev/null; then
            exit 3
        fi
    fi
fi

# An environment without pip is incomplete, because its creation was interrupted.
if ! "$venv/bin/python" -c 'import sys, pip; sys.exit(sys.prefix == sys.base_prefix)' 2> /dev/null; then
    echo "setup: making the virtual environment $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
fi
echo "setup: installing toolkit and its tools into $venv"
# Install each package with its locked version and SHA-256. `make requirements` updates the versions.
install() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" 2> >(grep -v '^WARNING: Location' >&2); }
install --require-hashes --requirement requirements/dev.txt
install --no-deps --no-build-isolation --editable .
touch "$venv/ready"
