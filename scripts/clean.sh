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
rm -rf "${XDG_STATE_HOME:-$HOME/.local/state}/toolkit/clusters"
rm -rf "$bin/.." build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache ./*.egg-info
find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
echo "clean: removed .venv and build"
