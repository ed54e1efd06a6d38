#!/bin/bash
# Made by toolkit. Needs nothing but Slurm, singularity and the image: sbatch job.sh
#
# Launch mode mpirun-container: PMIx 4.2.2 in the image speaks to mpi/pmix_v5 of Slurm
#
#SBATCH --job-name=mnist
#SBATCH --nodes=2
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:00:00
#SBATCH --output=output.log
#SBATCH --open-mode=append

set -u
# Where a job is submitted with --export=NONE its steps get nothing of this shell, PATH neither (srun(1), --export).
unset SLURM_EXPORT_ENV

# Everything that the job writes goes here.
job_dir=/work/ada/toolkit/runs/mnist-1
mkdir -p -- "$job_dir" || exit 1
cd -- "$job_dir" || exit 1

# How the job ended is left in a file, for clusters that keep no accounting. A job that Slurm starts
# again, after the failure of a node, has not ended yet.
rm -f exit-code stop-asked
leave_status() {
    local status=$?
    # A signal ends this shell while a command runs in front (those behind have an & in the list), and leaves
    # it the status of the one before. A trap for the signal would tell more, and would wait for the command.
    case "$(jobs -r)" in "" | *"&") ;; *) status=143 ;; esac
    rm -f .secret
    echo "$status" > exit-code.part && mv exit-code.part exit-code
}
trap leave_status EXIT

# The secret of ranks that speak TCP: a connection without it is refused.
rm -f .secret
(umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > .secret) || exit 1

command -v singularity > /dev/null || {
    echo "job: singularity is not on PATH of $(hostname); load its module or ask the centre" >&2
    exit 127
}

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode mpirun-container"

# What starts the daemons of mpirun on the other nodes, as it is in the container and srun is not.
# shellcheck disable=SC2016
printf '%s' '#!/bin/bash
# Lets an mpirun inside a container have ranks on other nodes: bash toolkit-mpirun.sh CONTAINER... -- MPIRUN...
#
# Inside there is neither srun nor a way into containers elsewhere. In place of ssh mpirun calls toolkit-agent with
# a node and a command; that leaves both in a file, and out here the command is started on that node, by srun, in a
# container like the one of mpirun.
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
# Stands for ssh inside the container: toolkit-agent NODE COMMAND...
# Mpirun and its daemons, which look for it on PATH, are started by toolkit-agent --start WORDS...
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

# daemon NODE COMMAND: on all cores of the node, as ranks will be started by it. Beside it the job has other steps.
daemon() {
    local node=$1 command=$2 status
    env -u SRUN_CPUS_PER_TASK -u SLURM_CPUS_PER_TASK SLURM_OVERLAP=1 \
        srun --mpi=none --nodes=1 --ntasks=1 --ntasks-per-node=1 --nodelist="$node" --cpu-bind=none \
        "${container[@]}" sh "$folder/toolkit-agent" --start sh -c "$command" < /dev/null
    status=$?
    [ "$status" -ne 0 ] || return 0
    # Mpirun sees that a daemon is gone, and ends. One that never came up it would wait for without an end.
    for _ in {1..25}; do
        [ ! -e "$folder/ended" ] || return 0
        sleep 0.2
    done
    echo "job: the daemon of mpirun on $node ended with status $status; mpirun is ended" >&2
    echo "$status" > "$folder/lost"
    kill "$mpirun" 2> /dev/null
}

# Asked twice, mpirun leaves its ranks behind.
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
    # A signal ends the waiting and not mpirun.
    [ "$heard" -eq "$signals" ] || status=
done
: > "$folder/ended"
# Daemons end by themselves when mpirun has; one that does not is ended with the job.
for _ in {1..50}; do
    [ -n "$(jobs -pr)" ] || break
    sleep 0.2
done
[ ! -e "$folder/lost" ] || status=$(cat "$folder/lost")
rm -rf -- "$folder"
exit "$status"
' > toolkit-mpirun.sh || exit 1

# Is the world that MPI reports the one that was started? If not, end here and not after a night.
# --foreground asks the launcher alone to end, once: an mpirun that is asked twice leaves its ranks behind.
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
    echo "job: preflight: MPI did not start within 300 s; the job is ended" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job is ended before it trains" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

bash /work/ada/toolkit/runs/mnist-1/toolkit-mpirun.sh \
    env -u OMPI_MCA_btl \
    singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
    /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
    -- /usr/bin/mpirun -n 4 --mca plm rsh --mca plm_rsh_agent toolkit-agent \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 \
    python -m toolkit.trainers.mnist --data /work/ada/toolkit/data/mnist
