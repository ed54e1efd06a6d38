#!/usr/bin/env bash
# engine.sh start|stop|answers: a Docker engine of our own, where none answers and we are root.
set -euo pipefail
run=/run/toolkit-engine

answers() { timeout 10 docker version > /dev/null 2>&1; }

start() {
    if answers; then
        echo "engine: a Docker engine answers already"
        return
    fi
    if [ "$(id -u)" != 0 ]; then
        echo "engine: no Docker engine answers, and starting one needs root." >&2
        echo "  fix: start it (sudo systemctl start docker), and join the group docker to use it" >&2
        exit 3
    fi
    mkdir -p "$run"
    echo "engine: starting dockerd"
    # Builds use the host's network and clusters need no address translation, so that no firewall rule is touched.
    setsid dockerd --iptables=false --ip6tables=false --pidfile "$run/dockerd.pid" > "$run/dockerd.log" 2>&1 < /dev/null 9>&- &
    for _ in $(seq 60); do
        sleep 0.5
        if answers; then
            return
        fi
    done
    tail -n 10 "$run/dockerd.log" >&2
    echo "engine: dockerd did not answer within 30 s; its log is $run/dockerd.log" >&2
    stop
    exit 3
}

stop() {
    # Only what start began has a pid file here.
    if [ -s "$run/dockerd.pid" ] && pid=$(cat "$run/dockerd.pid") && kill "$pid" 2> /dev/null; then
        for _ in $(seq 60); do
            kill -0 "$pid" 2> /dev/null || break
            sleep 0.5
        done
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
