#!/bin/bash
# Made by toolkit. Needs only Slurm, singularity and the image. Submit with: sbatch job.sh
#
# Launch mode gloo: Open MPI 4.1.4 in the image uses PMIx 4.2.2, compatible with Slurm's PMIx 5.0.7
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

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode gloo"

mark preflight
# Check whether Gloo reports the number of ranks that were started. If not, stop before the training starts.
# --foreground sends one signal, to the launcher only, because an mpirun that gets two signals does not stop its ranks.
timeout --foreground --kill-after=10 300 \
    srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --label --mpi=none \
        singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
        /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 HOROVOD_CONTROLLER=gloo \
            HOROVOD_CPU_OPERATIONS=gloo \
        python -m toolkit.trainers.gloo -- python -m toolkit.trainers.preflight --tasks "${SLURM_NTASKS:-4}"
status=$?
if [ "$status" -eq 124 ]; then
    echo "job: preflight: Gloo did not start within 300 s; the job stops" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job stops before the training" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

mark ranks
srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --kill-on-bad-exit=1 --label --mpi=none \
    singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
    /work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 HOROVOD_CONTROLLER=gloo \
        HOROVOD_CPU_OPERATIONS=gloo \
    python -m toolkit.trainers.gloo -- python -m toolkit.trainers.mnist \
        --data /work/ada/toolkit/data/mnist
