#!/bin/bash
# Made by toolkit 0.3.0. Runs on this machine without Slurm; needs only singularity and the image. Start with: bash job.sh
#
# Launch mode mpirun-container: the launcher in the image starts them

set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")" || exit 1

# Record the time at which each part of the start begins, for `toolkit bench start`.
rm -f start-times
mark() { echo "$1 ${EPOCHREALTIME:-$(date +%s)}" >> start-times; }
# Record the number of bytes of output that this node wrote, so that a reader on another node can wait for all bytes.
leave_size() { echo "output $(stat -Lc %s "/proc/$$/fd/1" 2> /dev/null)" >> start-times; }
mark script
# Write the exit status to a file, as the script for Slurm does.
rm -f exit-code stop-asked
leave_status() {
    local status=$?
    leave_size
    echo "$status" > exit-code.part && mv exit-code.part exit-code
    rm -f .secret
    rm -f process
}
trap leave_status EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# `toolkit jobs cancel` reads the process id, and its start time in case Linux reuses the id.
if read -r stat < "/proc/$$/stat" && read -r boot < /proc/sys/kernel/random/boot_id; then
    read -ra fields <<< "${stat##*) }"
    echo "$$ ${fields[19]} $boot" > process
fi 2> /dev/null

command -v singularity > /dev/null || {
    echo "job: singularity is not on PATH of $(hostname); load the module of singularity or ask the administrator" >&2
    exit 127
}

# Remove the variables of a Slurm allocation or step that this shell may belong to.
unset "${!SLURM_@}" "${!PMIX_@}" "${!PMI_@}"
export TOOLKIT_JOB_DIR="$PWD"

# Ranks that communicate over TCP share this secret, and refuse connections without the secret.
rm -f .secret
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > .secret) || exit 1

echo "job: $$, 2 ranks on $(hostname), mode mpirun-container"

# By default, Open MPI binds each rank to one core, and refuses to run more ranks than cores or to run as root.
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_hwloc_default_binding_policy=none PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# start WORDS: run WORDS in the image, once for each rank.
start() {
    singularity exec --pid --bind /work/ada/toolkit/runs/mnist-1 \
        /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
        mpirun -n 2 \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 "$@"
}

mark preflight
# Check whether MPI reports the requested world size. If not, stop before the training starts.
start python -m toolkit.trainers.preflight --tasks 2 || {
    status=$?
    echo "job: preflight failed with status $status; the job stops before the training" >&2
    exit "$status"
}

mark ranks
start python -m toolkit.trainers.mnist --data /work/ada/toolkit/data/mnist
