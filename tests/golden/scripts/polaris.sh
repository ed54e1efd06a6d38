#!/bin/bash
# Made by toolkit. Needs nothing but PBS, apptainer and the image: qsub job.sh
#
# NEVER RUN: toolkit has not tried this script on a machine with PBS. Read it before you use it.
#
# Launch mode bind: not predicted, as nothing was asked of Polaris; bind is what the site profile names
#
#PBS -N mnist
#PBS -l select=2:ncpus=64:mpiprocs=4:ompthreads=8
#PBS -l place=scatter
#PBS -l walltime=00:30:00
#PBS -q debug
#PBS -A train
#PBS -o output.log
#PBS -j oe
#PBS -l filesystems=home:eagle

set -u

# Everything that the job writes goes here.
job_dir="${HOME:?}"/toolkit/runs/mnist-1
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

# A batch shell need not know `module`; where it is set up differs from one centre to the next.
set +u
if ! command -v module > /dev/null; then
    for file in "${LMOD_PKG:-}/init/bash" "${MODULESHOME:-}/init/bash" /etc/profile.d/lmod.sh \
        /etc/profile.d/z00_lmod.sh /etc/profile.d/modules.sh /usr/share/lmod/lmod/init/bash \
        /usr/share/Modules/init/bash /opt/modules/default/init/bash /opt/cray/pe/modules/default/init/bash; do
        if [ -r "$file" ]; then
            # shellcheck disable=SC1090
            . "$file"
            break
        fi
    done
fi
module use /soft/modulefiles || {
    echo "job: $(hostname) cannot do: module" use /soft/modulefiles >&2
    exit 1
}
module load spack-pe-base/0.6.2 || {
    echo "job: $(hostname) cannot do: module" load spack-pe-base/0.6.2 >&2
    exit 1
}
module load apptainer || {
    echo "job: $(hostname) cannot do: module" load apptainer >&2
    exit 1
}
module load cray-mpich-abi || {
    echo "job: $(hostname) cannot do: module" load cray-mpich-abi >&2
    exit 1
}
set -u

command -v apptainer > /dev/null || {
    echo "job: apptainer is not on PATH of $(hostname); load its module or ask the centre" >&2
    exit 127
}

echo "job: ${PBS_JOBID:-?}, 8 ranks on 2 nodes, mode bind"

# Settings that modules or a login made for the MPI and the Python of the host mislead those in the image.
foreign=()
for name in \
    "${!OMPI_MCA_@}" \
    "${!PMIX_MCA_@}" \
    "${!PRTE_MCA_@}" \
    "${!UCX_@}" \
    "${!FI_@}" \
    "${!MPIR_@}" \
    "${!MPICH_@}" \
    "${!I_MPI_@}" \
    "${!MV2_@}" \
    "${!HYDRA_@}" \
    {APPTAINER,SINGULARITY}_{CLEANENV,CONTAIN,CONTAINALL,COMPAT,NO_MOUNT,NET,UNSHARE_NET,PID,UNSHARE_PID,IPC,UNSHARE_IPC,USERNS,UNSHARE_USERNS,FAKEROOT,OCI} \
    OPAL_PREFIX OPAL_LIBDIR PMIX_PREFIX PMIX_INSTALL_PREFIX PRTE_PREFIX PYTHONPATH PYTHONHOME; do
    if [ -n "${!name+set}" ]; then foreign+=(-u "$name"); fi
done

# Is the world that MPI reports the one that was started? If not, end here and not after a night.
# --foreground asks the launcher alone to end, once: an mpirun that is asked twice leaves its ranks behind.
timeout --foreground --kill-after=10 300 \
    mpiexec -n 8 --ppn 4 --depth 16 --cpu-bind depth \
        env ${foreign[@]+"${foreign[@]}"} \
        apptainer exec --nv --bind /opt --bind /var/run/palsd --bind /local/scratch \
            --bind "$job_dir" --bind "${HOME:?}"/toolkit/data/mnist:"${HOME:?}"/toolkit/data/mnist:ro \
            --bind "${HOME:?}"/toolkit/images/tf2.15-cpu.sif:"${HOME:?}"/toolkit/images/tf2.15-cpu.sif:ro \
        "${HOME:?}"/toolkit/images/tf2.15-cpu.sif \
        env TOOLKIT_JOB_DIR="$job_dir" OMP_NUM_THREADS=8 TF_NUM_INTRAOP_THREADS=8 \
            TF_NUM_INTEROP_THREADS=2 TMPDIR=/local/scratch \
            LD_LIBRARY_PATH="${CRAY_LD_LIBRARY_PATH:?}":"${LD_LIBRARY_PATH:?}":/opt/cray/pe/pals/1.2.12/lib \
        python -m toolkit.trainers.preflight --nodes 2 --output "$job_dir" --gpus-per-node 4 \
            --image "${HOME:?}"/toolkit/images/tf2.15-cpu.sif --tasks "${SLURM_NTASKS:-8}"
status=$?
if [ "$status" -eq 124 ]; then
    echo "job: preflight: MPI did not start within 300 s; the job is ended" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job is ended before it trains" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

mpiexec -n 8 --ppn 4 --depth 16 --cpu-bind depth \
    env ${foreign[@]+"${foreign[@]}"} \
    apptainer exec --nv --bind /opt --bind /var/run/palsd --bind /local/scratch \
        --bind "$job_dir" --bind "${HOME:?}"/toolkit/data/mnist:"${HOME:?}"/toolkit/data/mnist:ro \
    "${HOME:?}"/toolkit/images/tf2.15-cpu.sif \
    env TOOLKIT_JOB_DIR="$job_dir" OMP_NUM_THREADS=8 TF_NUM_INTRAOP_THREADS=8 \
        TF_NUM_INTEROP_THREADS=2 TMPDIR=/local/scratch \
        LD_LIBRARY_PATH="${CRAY_LD_LIBRARY_PATH:?}":"${LD_LIBRARY_PATH:?}":/opt/cray/pe/pals/1.2.12/lib \
    python -m toolkit.trainers.mnist --data "${HOME:?}"/toolkit/data/mnist --output "$job_dir" \
        --strategy horovod
