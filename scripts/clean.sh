#!/usr/bin/env bash
# Remove the clusters, containers and images of this clone from the Docker engine, the folder build/, and the virtual
# environment $1. ALL=1 also removes clusters with your jobs, the records of these jobs, and toolkit's cache.
set -euo pipefail
venv=$1
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."
clone=${TOOLKIT_CLONE:?run this by make clean}
state=${XDG_STATE_HOME:-$HOME/.local/state}/toolkit
cache=${TOOLKIT_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/toolkit}
label=toolkit.clone=$clone

jobs_of() { # print the records of jobs on the cluster $1, except jobs that this clone's make launched
    { grep -lsE "\"cluster\": ?\"$1\"" "$state"/jobs/*/record.json || true; } | while read -r record; do
        key=$(basename "$(dirname "$record")")
        grep -qsxF "$key" build/made.jobs || echo "$key"
    done
}

forget() { # remove the records of jobs whose names come from standard input
    while read -r key; do
        [ -z "$key" ] || rm -rf "$state/jobs/${key:?}"
    done
}

removed=0
if "$here/engine.sh" answers; then
    mapfile -t clusters < <(docker container ls --all --format '{{.Label "toolkit.cluster"}}' \
        --filter "label=$label" --filter label=toolkit.cluster | sort -u)
    for cluster in "${clusters[@]}"; do
        own=$(jobs_of "$cluster")
        if [ -n "$own" ] && [ -z "${ALL:-}" ]; then
            echo "clean: kept the cluster $cluster, because it has jobs of yours: ${own//$'\n'/ }"
            echo "  to remove it, these jobs and their results: make clean ALL=1"
            continue
        fi
        for kind in container network volume; do
            flags=(--quiet)
            [ "$kind" = container ] && flags+=(--all)
            mapfile -t ids < <(docker "$kind" ls "${flags[@]}" --filter "label=toolkit.cluster=$cluster" \
                --filter "label=$label")
            [ "${#ids[@]}" -eq 0 ] || docker "$kind" rm --force "${ids[@]}" > /dev/null
        done
        rm -rf "$state/clusters/${cluster:?}"
        forget <<< "$own"
        removed=$((removed + 1))
    done
    # Remove the files and containers of a killed command of this clone.
    mapfile -t ids < <(docker container ls --all --quiet --filter label=toolkit=run --filter "label=$label")
    [ "${#ids[@]}" -eq 0 ] || docker container rm --force "${ids[@]}" > /dev/null
    # If the name now has another id, another clone built this image. Docker keeps an image that a container uses.
    images=0
    while read -r id name; do
        [ "$(docker image inspect --format '{{.Id}}' "$name" 2> /dev/null)" = "$id" ] || continue
        docker image rm "$name" > /dev/null 2>&1 && images=$((images + 1))
    done < <(sort -u build/made.images 2> /dev/null || true)
    echo "clean: removed $removed virtual clusters and $images images of this clone from the Docker engine"
else
    echo "clean: no Docker engine answers, so images and clusters of this clone remain in the engine"
fi

forget < <(cat build/made.jobs 2> /dev/null || true)
if [ -n "${ALL:-}" ]; then
    rm -rf "$cache"
    kept="Debian packages stay"
else
    kept="Debian packages and the cache $cache stay"
fi
# A remaining cluster still belongs to this clone, and so do the jobs that make launched on this cluster.
rm -rf "$venv" .venvs dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache ./*.egg-info build
find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
echo "clean: removed $venv and build; $kept"
