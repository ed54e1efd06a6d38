#!/usr/bin/env bash
# Run a command with a Docker engine: a running engine, or else an engine that is started now and stopped
# afterwards.
# KEEP=1 leaves an engine that was started running, if the command succeeds.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ "$(id -u)" = 0 ]; then folder=/run; else folder=${XDG_RUNTIME_DIR:-$HOME}; fi
lock=$folder/.toolkit-engine.lock
# This file exists while an engine runs that a command started for itself; the last command that uses it stops
# it.
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
            echo "engine: left running; make engine-stop ends it"
        elif flock --exclusive --nonblock 9; then
            "$here/engine.sh" stop
        fi
    fi
    exit "$status"
}

forward() { # pass a signal on and let the command clean up; bash itself would first wait for it
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
    # One process at a time: if two processes see no engine, the second finds the engine of the first.
    flock 8
    if ! "$here/engine.sh" answers 8>&-; then
        "$here/engine.sh" start 8>&-
        touch "$borrowed"
    fi
) 8> "$lock.start"
# Job control gives the command a separate process group, so that it gets Ctrl-C exactly once, from this script. Without
# job control, a command in the background of a script would ignore Ctrl-C.
set -m
"$@" 9>&- < /dev/null &
child=$!
set +m
wait "$child"
