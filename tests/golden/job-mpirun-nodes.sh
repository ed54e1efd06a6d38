#!/bin/bash
# Made by toolkit. Needs only Slurm, singularity and the image. Submit with: sbatch job.sh
#
# Launch mode mpirun-container: Open MPI 4.1.4 in the image uses PMIx 4.2.2, compatible with Slurm's PMIx 5.0.7
#
#SBATCH --job-name=mnist
#SBATCH --nodes=2
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:00:00
#SBATCH --output=output.log
#SBATCH --open-mode=append

set -u
# After sbatch --export=NONE, srun would pass no variable of this shell to its steps, not even PATH (srun(1), --export).
unset SLURM_EXPORT_ENV

# toolkit writes the files of this job to this folder.
job_dir=/work/ada/toolkit/runs/mnist-1
mkdir -p -- "$job_dir" || exit 1
cd -- "$job_dir" || exit 1

# Record the time at which each part of the start begins, for `toolkit bench start`.
rm -f start-times
mark() { echo "$1 ${EPOCHREALTIME:-$(date +%s)}" >> start-times; }
# Record the number of bytes of output that this node wrote, so that a reader on another node can wait for all bytes.
leave_size() { echo "output $(stat -Lc %s "/proc/$$/fd/1" 2> /dev/null)" >> start-times; }
mark script
# Write the exit status to a file, because not every cluster keeps accounting records. Slurm starts a job
# again after a node failure: remove the exit status of the first start.
rm -f exit-code stop-asked
leave_status() {
    local status=$?
    # If a signal ends this shell during a foreground command, $? is the status of the previous command, and `jobs -r`
    # lists the foreground command without an &. A trap for the signal would run only after this command.
    case "$(jobs -r)" in "" | *"&") ;; *) status=143 ;; esac
    rm -f .secret
    leave_size
    echo "$status" > exit-code.part && mv exit-code.part exit-code
}
trap leave_status EXIT

# Ranks that communicate over TCP share this secret, and refuse connections without the secret.
rm -f .secret
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > .secret) || exit 1

command -v singularity > /dev/null || {
    echo "job: singularity is not on PATH of $(hostname); load the module of singularity or ask the centre" >&2
    exit 127
}

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode mpirun-container"

# This agent starts mpirun's daemons on the other nodes: mpirun runs in the container, where srun is missing.
# shellcheck disable=SC2016
printf '%s' '#!/bin/bash
# Run mpirun in a container with ranks on other nodes: bash toolkit-mpirun.sh CONTAINER... -- MPIRUN...
#
# The container has no srun, so mpirun cannot start containers on other nodes. Instead of ssh, mpirun calls toolkit-agent
# with a node and a command. The agent writes both to a file. This script reads the file, and srun starts the command on
# the node, in a container with the same options.
set -u

container=()
while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
    container+=("$1")
    shift
done
shift

folder=${BASH_SOURCE[0]%/*}/daemons
rm -rf -- "$folder" && mkdir -- "$folder" || exit 1
cat > "$folder/toolkit-agent" << "END" && chmod 755 "$folder/toolkit-agent" || exit 1
#!/bin/sh
# Replaces ssh in the container: toolkit-agent NODE COMMAND...
# toolkit-agent --start WORDS... starts mpirun and its daemons with the agent on PATH.
if [ "${1:-}" = --start ]; then
    shift
    PATH=${0%/*}:$PATH
    export PATH
    exec "$@"
fi
folder=${0%/*}
while :; do
    case ${1:-} in
    -*) shift ;;
    *) break ;;
    esac
done
node=$1
shift
printf "%s\000%s\000" "$node" "$*" > "$folder/$$.part" && mv "$folder/$$.part" "$folder/$$.asked"
END

# daemon NODE COMMAND: start a daemon of mpirun on a node. Its ranks can use all cores, and other steps may run meanwhile.
daemon() {
    local node=$1 command=$2 status
    env -u SRUN_CPUS_PER_TASK -u SLURM_CPUS_PER_TASK SLURM_OVERLAP=1 \
        srun --mpi=none --nodes=1 --ntasks=1 --ntasks-per-node=1 --nodelist="$node" --cpu-bind=none \
        "${container[@]}" sh "$folder/toolkit-agent" --start sh -c "$command" < /dev/null
    status=$?
    [ "$status" -ne 0 ] || return 0
    # mpirun exits after a daemon exits. It would wait without end for a daemon that never started.
    for _ in {1..25}; do
        [ ! -e "$folder/ended" ] || return 0
        sleep 0.2
    done
    echo "job: the daemon of mpirun on $node exited with status $status; stopping mpirun" >&2
    echo "$status" > "$folder/lost"
    kill "$mpirun" 2> /dev/null
}

# Pass on only the first signal, because an mpirun that gets two signals does not stop its ranks.
signals=0
# shellcheck disable=SC2317
end() {
    signals=$((signals + 1))
    [ "$signals" -gt 1 ] || kill "$mpirun" 2> /dev/null
}

"${container[@]}" sh "$folder/toolkit-agent" --start "$@" &
mpirun=$!
trap end INT TERM HUP

others=$((${SLURM_JOB_NUM_NODES:-1} - 1))
while [ "$others" -gt 0 ] && kill -0 "$mpirun" 2> /dev/null; do
    for file in "$folder"/*.asked; do
        if { IFS= read -r -d "" node && IFS= read -r -d "" command; } 2> /dev/null < "$file"; then
            daemon "$node" "$command" &
            rm -f -- "$file"
            others=$((others - 1))
        fi
    done
    sleep 0.2
done

status=
until [ -n "$status" ]; do
    heard=$signals
    wait "$mpirun"
    status=$?
    # A signal ends `wait`, but mpirun continues.
    [ "$heard" -eq "$signals" ] || status=
done
: > "$folder/ended"
# Daemons exit after mpirun exits. Slurm kills any remaining daemon at the end of the job.
for _ in {1..50}; do
    [ -n "$(jobs -pr)" ] || break
    sleep 0.2
done
[ ! -e "$folder/lost" ] || status=$(cat "$folder/lost")
rm -rf -- "$folder"
exit "$status"
' > toolkit-mpirun.sh || exit 1

mark preflight
# Check whether MPI reports the number of ranks that were started. If not, stop before the training starts.
# --foreground sends one signal, to the launcher only, because an mpirun that gets two signals does not stop its ranks.
timeout --foreground --kill-after=10 300 \
    bash /work/ada/toolkit/runs/mnist-1/toolkit-mpirun.sh \
        env -u OMPI_MCA_btl \
        singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
        /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
        -- /usr/bin/mpirun -n 4 --mca plm rsh --mca plm_rsh_agent toolkit-agent \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 \
        python -m toolkit.trainers.preflight --tasks "${SLURM_NTASKS:-4}"
status=$?
if [ "$status" -eq 124 ]; then
    echo "job: preflight: MPI did not start within 300 s; the job stops" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job stops before the training" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

mark ranks
bash /work/ada/toolkit/runs/mnist-1/toolkit-mpirun.sh \
    env -u OMPI_MCA_btl \
    singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
    /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
    -- /usr/bin/mpirun -n 4 --mca plm rsh --mca plm_rsh_agent toolkit-agent \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 \
    python -m toolkit.trainers.mnist --data /work/ada/toolkit/data/mnist
