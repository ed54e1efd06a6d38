#!/usr/bin/env bash
# Run a command with a Docker engine: one that answers, else one that is started now and stopped afterwards.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lock=/tmp/toolkit-engine.$(id -u).lock

started=
finish() {
    status=$?
    trap - EXIT
    # Another make may be using the engine by now; the last one that holds the lock alone may stop it.
    if [ -n "$started" ]; then
        flock --unlock 9
        if flock --exclusive --nonblock 9; then
            "$here/engine.sh" stop
        else
            echo "engine: left running for another command; make engine-stop ends it"
        fi
    fi
    exit "$status"
}

exec 9> "$lock"
flock --shared 9
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if ! "$here/engine.sh" answers; then
    started=yes
    "$here/engine.sh" start
fi
"$@" 9>&-
