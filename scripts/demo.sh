#!/usr/bin/env bash
# From nothing to a network trained on two nodes: each step is a command that a person could type.
set -euo pipefail
bin=$1
recipe=$2
toolkit=$bin/toolkit
sif=build/images/$recipe.sif
out=build/demo
cluster=demo
cd "$(dirname "$0")/.."
mkdir -p "$out"

began=$SECONDS
step_began=$SECONDS
: > "$out/steps.tmp"

title() { # title N TEXT: what comes now, and how long the step before took
    step_began=$SECONDS
    printf '\n\033[1m[%s/6] %s\033[0m\n' "$1" "$2" | if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then cat; else sed 's/\x1b\[[0-9]*m//g'; fi
}

say() { # say WORDS: show a command as a person would type it, then run it
    printf '$ toolkit'
    printf ' %q' "$@"
    printf '\n'
    "$toolkit" "$@"
}

done_in() { # done_in NAME: note the seconds of a step
    printf '%s\t%s\n' "$1" "$((SECONDS - step_began))" >> "$out/steps.tmp"
}

finish() {
    status=$?
    trap - EXIT INT TERM
    rm -f "$out/steps.tmp"
    if [ -n "${KEEP:-}" ] && [ "$status" = 0 ]; then
        echo "The cluster is up: toolkit cluster shell --name $cluster; toolkit cluster down --name $cluster"
    elif "$toolkit" cluster status --name "$cluster" > /dev/null 2>&1; then
        "$toolkit" cluster down --name "$cluster" || true
    fi
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

title 1 "Build a training image: Open MPI, Horovod, TensorFlow and mpi4py that match each other"
say image build "$recipe"
done_in image

title 2 "Turn it into one SIF file"
say image sif "$recipe" -o "$sif"
done_in sif

title 3 "Bring up a virtual Slurm cluster: a login node and two compute nodes"
say cluster up --name "$cluster"
done_in cluster

title 4 "Ask the doctor whether this image will run on this cluster, and how"
say doctor "$sif" --cluster "$cluster"
done_in doctor

title 5 "Fetch MNIST, then train on two nodes through sbatch, srun and singularity"
say data get mnist
say launch mnist --nodes 2 --cluster "$cluster" --image "$sif"
done_in launch

title 6 "Bring the result back"
say report --output "$out"
done_in report

echo
echo "Seconds a step:"
column -t "$out/steps.tmp" 2> /dev/null || cat "$out/steps.tmp"
echo "In all: $((SECONDS - began)) s. Look at $out/training.png and $out/result.json."
