#!/usr/bin/env bash
# Show what toolkit does, from an empty machine to a training on two nodes, with commands that a user could type.
set -euo pipefail
bin=$1
recipe=$2
toolkit=$bin/toolkit
name=$(basename "${recipe%.toml}")
sif=build/images/$name.sif
out=build/demo
cluster=demo
cd "$(dirname "$0")/.."
mkdir -p "$out"

began=$SECONDS
step_began=$SECONDS

title() { # title N TEXT: print the title of step N, and the duration of the previous step
    step_began=$SECONDS
    printf '\n\033[1m[%s/6] %s\033[0m\n' "$1" "$2" | if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then cat; else sed 's/\x1b\[[0-9]*m//g'; fi
}

say() { # say WORDS: print a command as a user would type it, then run it
    printf '$ toolkit'
    printf ' %q' "$@"
    printf '\n'
    set -m
    "$toolkit" "$@" 8>&- &
    child=$!
    set +m
    local status=0
    wait "$child" || status=$?
    child=
    return "$status"
}

done_in() { # done_in NAME: record the duration of a step in seconds
    printf '%s\t%s\n' "$1" "$((SECONDS - step_began))" >> "$out/steps.tmp"
}

child=
finish() {
    status=$?
    trap '' INT TERM HUP
    trap - EXIT
    rm -f "$out/steps.tmp" "$out/.began"
    if [ -n "${KEEP:-}" ] && [ "$status" = 0 ]; then
        echo "The cluster is up. Try: $toolkit cluster shell --name $cluster"
        echo "Remove it with:        $toolkit cluster down --name $cluster"
    else
        # This command also removes a partly started cluster. A missing cluster is not an error.
        "$toolkit" cluster down --name "$cluster" 2> /dev/null || true
    fi
    exit "$status"
}

forward() { # send a signal to the running step, and let the step clean up
    trap '' INT TERM HUP
    if [ -n "$child" ]; then
        kill -s "$1" "$child" 2> /dev/null || true
        wait "$child" || true
    fi
    exit "$2"
}

# Run one demo at a time, because demos use the same cluster and folder.
exec 8> "$out/.lock"
if ! flock --exclusive --nonblock 8; then
    echo "demo: another make demo runs in this folder" >&2
    exit 3
fi
rm -f "$out"/result.json "$out"/training.png
: > "$out/steps.tmp"
: > "$out/.began"
trap finish EXIT
trap 'forward INT 130' INT
trap 'forward TERM 143' TERM
trap 'forward TERM 129' HUP

title 1 "Build a training image: Open MPI, Horovod, TensorFlow and mpi4py that match each other"
say image build "$recipe"
done_in image

title 2 "Convert the image to one SIF file"
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
# Store the name of this job's record, so that `make clean` removes only this record.
state=${XDG_STATE_HOME:-$HOME/.local/state}/toolkit
{ find "$state/jobs" -name record.json -newer "$out/.began" -exec grep -lsE '"cluster": ?"demo"' {} + || true; } \
    2> /dev/null | while read -r record; do basename "$(dirname "$record")"; done >> build/made.jobs
done_in launch

title 6 "Copy the result to this machine"
say report --output "$out"
done_in report

echo
echo "Duration of each step in seconds:"
column -t "$out/steps.tmp" 2> /dev/null || cat "$out/steps.tmp"
echo "In total: $((SECONDS - began)) s. Look at $out/training.png and $out/result.json."
