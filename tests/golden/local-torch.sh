#!/bin/bash
# Made by toolkit 0.3.0. Runs on this machine without Slurm; needs only singularity and the image. Start with: bash job.sh
#
# Launch mode torch: the launcher in the image starts them

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

echo "job: $$, 2 ranks on $(hostname), mode torch"

# Each rank reads this file in the container, then executes the command. The file names the node of rank 0. This script looks up
# the node names, because the image lacks the commands of the scheduler. The port is free on the first node, and
# differs between jobs.
find_peers() {
    local nodes first count job port
    nodes=$(printf localhost) job=$$
    [ -n "$nodes" ] || return
    count=$(wc -l <<< "$nodes") first=${nodes%%$'\n'*} nodes=${nodes//$'\n'/ }
    port=$((16384 + job * 16 % 16000))
    while grep -qE "^ *[0-9]+: [0-9A-F]+:($(printf '%04X|' $(seq "$port" $((port + 0))))none) " \
        /proc/net/tcp /proc/net/tcp6 2> /dev/null; do
        port=$((port + 1))
    done
    {
        printf '%s=%q\n' first "$first" nodes "$nodes" port "$port" job "$job" node_count "$count" \
            local_ranks 2 ranks $((count * 2))
        cat << 'END'
rank="$SLURM_PROCID"
local_rank="$SLURM_LOCALID"
node_rank="$SLURM_NODEID"
export MASTER_ADDR="$first" MASTER_PORT="$port"
export RANK="$rank" LOCAL_RANK="$local_rank" NODE_RANK="$node_rank"
export WORLD_SIZE="$ranks" LOCAL_WORLD_SIZE="$local_ranks"
[ "$rank" != 0 ] || date "+container %s.%N" >> "${0%/*}/start-times"
exec "$@"
END
    } > toolkit-ranks.sh || return
}
find_peers || {
    echo "job: the addresses of the job's nodes could not be resolved" >&2
    exit 1
}

# start WORDS: run WORDS once for each rank, with the variables that a Slurm step sets.
# If one rank fails, stop the other ranks, which would wait for the failed rank forever.
steps=0
start() {
    local rank status=0 pids=()
    for ((rank = 0; rank < 2; rank++)); do
        SLURM_JOB_ID=$$ SLURM_STEP_ID=$steps SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=2 SLURM_PROCID=$rank SLURM_LOCALID=$rank SLURM_NODEID=0 \
        SLURM_STEP_NODELIST="${HOSTNAME%%.*}" SLURMD_NODENAME="${HOSTNAME%%.*}" \
        singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
        /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
        sh /work/ada/toolkit/runs/mnist-1/toolkit-ranks.sh \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 "$@" &
        pids+=("$!")
    done
    for ((rank = 0; rank < 2 && status == 0; rank++)); do
        wait -n || status=$?
    done
    [ "$status" -eq 0 ] || kill "${pids[@]}" 2> /dev/null
    wait
    steps=$((steps + 1))
    return "$status"
}

mark ranks
start python train.py
