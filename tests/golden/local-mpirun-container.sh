#!/bin/bash
# Made by toolkit 0.3.0. Runs on this machine without Slurm; needs nothing but singularity and the image: bash job.sh
#
# Launch mode mpirun-container: the launcher in the image starts them

set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")" || exit 1

# How the job ended is left in a file, as a job of Slurm leaves it.
rm -f exit-code stop-asked
leave_status() {
    echo "$?" > exit-code.part && mv exit-code.part exit-code
    rm -f .secret
    rm -f process
}
trap leave_status EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Who runs it, for `toolkit jobs cancel`: when it began tells this process from a later one of its number.
if read -r stat < "/proc/$$/stat" && read -r boot < /proc/sys/kernel/random/boot_id; then
    read -ra fields <<< "${stat##*) }"
    echo "$$ ${fields[19]} $boot" > process
fi 2> /dev/null

command -v singularity > /dev/null || {
    echo "job: singularity is not on PATH of $(hostname); load its module or ask the administrator" >&2
    exit 127
}

# The ranks are none of an allocation or a step that this shell may be in.
unset "${!SLURM_@}" "${!PMIX_@}" "${!PMI_@}"
export TOOLKIT_JOB_DIR="$PWD"

# The secret of ranks that speak TCP: a connection without it is refused.
rm -f .secret
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > .secret) || exit 1

echo "job: $$, 2 ranks on $(hostname), mode mpirun-container"

# Open MPI would bind each rank to one core, and refuse more ranks than cores, and root (a container's user).
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_hwloc_default_binding_policy=none PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# start WORDS: inside the image, once a rank.
start() {
    singularity exec --pid --bind /work/ada/toolkit/runs/mnist-1 \
        /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
        mpirun -n 2 \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 "$@"
}

# Is the world that MPI reports the one that was asked for? If not, end here and not after a night.
start python -m toolkit.trainers.preflight --tasks 2 || {
    status=$?
    echo "job: preflight failed with status $status; the job is ended before it trains" >&2
    exit "$status"
}

start python -m toolkit.trainers.mnist --data /work/ada/toolkit/data/mnist
