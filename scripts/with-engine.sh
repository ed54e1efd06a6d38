#!/usr/bin/env bash
# Run a command with a Docker engine. If no engine runs, start an engine, and stop it after the command.
# With KEEP=1 and if the command succeeds, the started engine keeps running.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ "$(id -u)" = 0 ]; then folder=/run; else folder=${XDG_RUNTIME_DIR:-$HOME}; fi
lock=$folder/.toolkit-engine.lock
# While this file exists, the running engine is one that this script started. The last command that uses the engine stops the engine.
borrowed=/run/toolkit-engine/borrowed

child=
finish() {
    status=$?
    trap '' INT TERM HUP
    trap - EXIT
    if [ -e "$borrowed" ]; then
        flock --unlock 9
        if [ -n "${KEEP:-}" ] && [ "$status" = 0 ]; then
            rm -f "$borrowed"
            echo "engine: the Docker engine keeps running; make engine-stop stops it"
        elif flock --exclusive --nonblock 9; then
            "$here/engine.sh" stop
        fi
    fi
    exit "$status"
}

forward() { # send a signal to the command; without this trap, bash would wait for the command first
    trap '' INT TERM HUP
    if [ -n "$child" ]; then
        kill -s "$1" -- "-$child" 2> /dev/null || true
        wait "$child" || true
    fi
    exit "$2"
}

exec 9> "$lock"
flock --shared 9
trap finish EXIT
trap 'forward INT 130' INT
trap 'forward TERM 143' TERM
trap 'forward TERM 129' HUP
(
    # With the lock, only one process at a time starts an engine. The next process then finds the running engine.
    flock 8
    if ! "$here/engine.sh" answers 8>&-; then
        "$here/engine.sh" start 8>&-
        touch "$borrowed"
    fi
) 8> "$lock.start"
# Job control gives the command its own process group, so that only this script sends Ctrl-C to it, and only once. Without
# job control, a background command of a script would ignore Ctrl-C.
set -m
"$@" 9>&- < /dev/null &
child=$!
set +m
wait "$child"
