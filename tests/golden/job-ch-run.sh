#!/bin/bash
# Made by toolkit. Needs only Slurm, ch-run and the image. Submit with: sbatch job.sh
#
# Launch mode srun-pmix: Open MPI 4.1.4 in the image uses PMIx 4.2.2, compatible with Slurm's PMIx 5.0.7
#
#SBATCH --job-name=mnist
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --ntasks-per-node=1
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

command -v ch-run > /dev/null || {
    echo "job: ch-run is not on PATH of $(hostname); load the module of ch-run or ask the centre" >&2
    exit 127
}

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode srun-pmix"

mark ranks
srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --label --mpi=pmix \
    env -u OMPI_MCA_btl \
    ch-run --write-fake --cd=/work/ada/toolkit/runs/mnist-1 \
        --bind=/work/ada/toolkit/runs/mnist-1:/work/ada/toolkit/runs/mnist-1 \
    /work/ada/images/my.sqfs -- \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 'A=1 2' \
    python -m toolkit.trainers.mnist --data /work/ada/toolkit/data/mnist
