#!/usr/bin/env bash
# Remove what make demo, make image and make test made: clusters, images, build/, and the environment in $1.
set -euo pipefail
venv=$1
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."

if "$here/engine.sh" answers; then
    # The clusters that make starts, by their label; a person's own ones stay.
    mapfile -t clusters < <(docker container ls --all --format '{{.Label "toolkit.cluster"}}' \
        --filter label=toolkit.cluster | sort -u | grep -E '^(demo|matrix-[a-z]+|test-[0-9a-f]{6}.*)$' || true)
    for cluster in "${clusters[@]}"; do
        for kind in container network volume; do
            flags=(--quiet)
            [ "$kind" = container ] && flags+=(--all)
            mapfile -t ids < <(docker "$kind" ls "${flags[@]}" --filter "label=toolkit.cluster=$cluster")
            [ "${#ids[@]}" -eq 0 ] || docker "$kind" rm --force "${ids[@]}" > /dev/null
        done
    done
    # What a build or a conversion that was killed left behind.
    mapfile -t ids < <(docker container ls --all --quiet --filter label=toolkit=run &&
        docker container ls --all --quiet --filter label=toolkit=build)
    [ "${#ids[@]}" -eq 0 ] || docker container rm --force "${ids[@]}" > /dev/null
    # Images of the recipes that come with toolkit, of its nodes, and what they began from.
    names=$(printf '%s\n' recipes/*.toml | sed 's|.*/||; s|\.toml$||' | paste -sd'|')
    mapfile -t images < <(docker image ls --format '{{.Repository}}:{{.Tag}}' |
        grep -E "^(toolkit/(${names//./\\.}):|toolkit-(base|builder|node):|toolkit-stack:(${names//./\\.})-)" || true)
    [ "${#images[@]}" -eq 0 ] || docker image rm --force "${images[@]}" > /dev/null || true
    docker image prune --force --filter label=toolkit > /dev/null
    echo "clean: removed ${#clusters[@]} virtual clusters and ${#images[@]} images from the Docker engine"
else
    echo "clean: no Docker engine answers, so there is nothing to remove from it"
fi

state=${XDG_STATE_HOME:-$HOME/.local/state}/toolkit
cache=${TOOLKIT_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/toolkit}
rm -rf "$state/clusters/demo" "$cache/data/mnist" "$cache/files" "$cache/compiled" "$cache/uv"
# Records of jobs on the demo's cluster; those of other launches are a person's own.
{ grep -lsE '"cluster": ?"demo"' "$state"/jobs/*/record.json || true; } | while read -r record; do
    rm -rf "$(dirname "$record")"
done
rm -rf "$venv" build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache ./*.egg-info
find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
echo "clean: removed $venv, build, and MNIST, packages and what was compiled from the cache; Debian packages stay"
