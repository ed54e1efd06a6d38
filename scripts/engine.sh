#!/usr/bin/env bash
# Start, stop or test the Docker engine: engine.sh start|stop|answers. start needs root, and never starts a second engine.
set -euo pipefail
run=/run/toolkit-engine

answers() { timeout 10 docker version > /dev/null 2>&1; }

ours() { # print the process id of the engine that `engine.sh start` started, if it still runs
    local pid
    [ -s "$run/pid" ] && pid=$(cat "$run/pid") && [ "$(cat "/proc/$pid/comm" 2> /dev/null)" = dockerd ] && echo "$pid"
}

start() {
    if answers; then
        echo "engine: a Docker engine answers already"
        return
    fi
    if [ "$(id -u)" != 0 ]; then
        echo "error: no Docker engine answers, and starting one needs root." >&2
        echo "hint: start the engine (sudo systemctl start docker), and join the group docker to use the engine" >&2
        exit 3
    fi
    if ! command -v dockerd > /dev/null; then
        echo "error: no Docker engine answers, and dockerd is not installed." >&2
        echo "hint: apt-get install docker.io" >&2
        exit 3
    fi
    mkdir -p "$run"
    echo "engine: starting dockerd"
    # The engine needs no firewall rules: builds use the host's network, and clusters need no address translation.
    # setsid protects the engine from Ctrl-C in the terminal. exec makes dockerd the process with this id.
    # shellcheck disable=SC2016  # the inner shell expands the variables
    setsid bash -c 'echo $$ > "$0/pid"; exec dockerd --iptables=false --ip6tables=false --pidfile "$0/dockerd.pid"' \
        "$run" > "$run/dockerd.log" 2>&1 < /dev/null 9>&- &
    for _ in $(seq 60); do
        sleep 0.5
        if answers; then
            return
        fi
    done
    tail -n 10 "$run/dockerd.log" >&2
    echo "engine: dockerd did not answer within 30 s; these are the last lines of its log" >&2
    stop
    exit 3
}

stop() {
    local pid
    if pid=$(ours); then
        kill "$pid" 2> /dev/null || true
        for _ in $(seq 60); do
            kill -0 "$pid" 2> /dev/null || break
            sleep 0.5
        done
        if kill -0 "$pid" 2> /dev/null; then
            echo "engine: dockerd (process $pid) does not exit; its log is $run/dockerd.log" >&2
            exit 1
        fi
        echo "engine: stopped dockerd"
    fi
    rm -rf "$run"
}

case ${1:-} in
    start) start ;;
    stop) stop ;;
    answers) answers ;;
    *)
        echo "usage: engine.sh start|stop|answers" >&2
        exit 2
        ;;
esac
