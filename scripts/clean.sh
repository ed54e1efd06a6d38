#!/usr/bin/env bash
# Remove what make demo, make image and make test made: clusters, images, build/, and the environment itself.
set -euo pipefail
bin=$1
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.."

if "$here/engine.sh" answers 2> /dev/null; then
    # Everything of ours in the engine carries a label of ours; nothing else is touched.
    for kind in container network volume; do
        flags=(--quiet)
        [ "$kind" = container ] && flags+=(--all)
        mapfile -t ids < <(docker "$kind" ls "${flags[@]}" --filter label=toolkit.cluster)
        [ "${#ids[@]}" -eq 0 ] || docker "$kind" rm --force "${ids[@]}" > /dev/null
    done
    mapfile -t images < <(docker image ls --all --format '{{.Repository}}:{{.Tag}}' |
        grep -E '^(toolkit/[^:]+|toolkit-(base|builder|node)):' || true)
    [ "${#images[@]}" -eq 0 ] || docker image rm --force "${images[@]}" > /dev/null
    docker image prune --force --filter label=toolkit > /dev/null
    echo "clean: removed ${#images[@]} images and every virtual cluster from the Docker engine"
else
    echo "clean: no Docker engine answers; images and clusters in it, if any, stay (make engine clean removes them)"
fi
state=${XDG_STATE_HOME:-$HOME/.local/state}/toolkit
cache=${TOOLKIT_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/toolkit}
rm -rf "$state/clusters" "$cache/data/mnist"
# Records of jobs on the demo's cluster; those of other launches are a person's own.
{ grep -lsE '"cluster": ?"demo"' "$state"/jobs/*/record.json || true; } | while read -r record; do
    rm -rf "$(dirname "$record")"
done
rm -rf "$bin/.." build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache ./*.egg-info
find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
echo "clean: removed .venv, build, and MNIST from the cache; Debian packages stay"
