#!/bin/bash
# Made by toolkit. Needs only Slurm, podman and the image. Submit with: sbatch job.sh
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
# shellcheck disable=SC2016

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

command -v podman > /dev/null || {
    echo "job: podman is not on PATH of $(hostname); load the module of podman or ask the centre" >&2
    exit 127
}

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode srun-pmix"

# Each node stores its own images. Load this image on every node before the ranks start.
# shellcheck disable=SC2016
printf '%s' '#!/bin/sh
# Create a podman store on this node, and load an image into it: sh toolkit-podman.sh ARCHIVE NAME.
# A job script sources this file without arguments, so that its ranks use the same store.
#
# The default store is in the home folder, which nodes share. podman needs a local disk. Without
# a login session XDG_RUNTIME_DIR is also missing.
store=/tmp/toolkit-podman-$(id -u)
export XDG_RUNTIME_DIR="$store/run" CONTAINERS_STORAGE_CONF="$store/storage.conf" PODMAN_IGNORE_CGROUPSV1_WARNING=1
if [ "$#" -eq 2 ]; then
    umask 077
    if ! mkdir -p "$store" "$store/run" || ! [ -O "$store" ]; then
        echo "job: $store on $(hostname) belongs to another user" >&2
        exit 1
    fi
    # settle [WORDS...]: write the configuration of the podman store, and test it.
    settle() {
        {
            printf '"'"'[storage]\ndriver = "overlay"\nrunroot = "%s/run/containers"\n'"'"' "$store"
            printf '"'"'graphroot = "%s/images"\nrootless_storage_path = "%s/images"\n'"'"' "$store" "$store"
            [ "$#" -eq 0 ] || printf '"'"'[storage.options.overlay]\nmount_program = "%s"\n'"'"' "$1"
        } > "$CONTAINERS_STORAGE_CONF.$$" && mv "$CONTAINERS_STORAGE_CONF.$$" "$CONTAINERS_STORAGE_CONF"
        podman --cgroup-manager=cgroupfs info > /dev/null 2>&1
    }
    # If the kernel has no overlay file system for users, use fuse-overlayfs.
    [ -e "$CONTAINERS_STORAGE_CONF" ] || settle || settle "$(command -v fuse-overlayfs)" ||
        rm -f "$CONTAINERS_STORAGE_CONF"
    loaded=$(podman --cgroup-manager=cgroupfs load --quiet --input "$1") || exit
    podman --cgroup-manager=cgroupfs tag "${loaded##*: }" "$2"
fi
' > toolkit-podman.sh || exit 1
# shellcheck disable=SC1090,SC1091
. ./toolkit-podman.sh
srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --label --mpi=none \
sh ./toolkit-podman.sh /work/ada/toolkit/images/my-0123456789ab.tar localhost/toolkit/mnist-1:latest || {
    echo "job: podman did not load the image on every node" >&2
    exit 1
}

mark preflight
# Check whether MPI reports the number of ranks that were started. If not, stop before the training starts.
# --foreground sends one signal, to the launcher only, because an mpirun that gets two signals does not stop its ranks.
timeout --foreground --kill-after=10 300 \
    srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --label --mpi=pmix \
        sh \
            -c 'exec "$0" --cgroup-manager=cgroupfs run ${PMI_FD:+"--preserve-fd=$PMI_FD"} "$@"' podman \
            --rm --pull=never --entrypoint= --env-host \
            --env=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --network=host \
            --ipc=host --pid=host --userns=keep-id --ulimit=host --security-opt=label=disable \
            --volume=/tmp:/tmp --volume=/work/ada/toolkit/runs/mnist-1:/work/ada/toolkit/runs/mnist-1 \
        localhost/toolkit/mnist-1:latest \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 \
        python -m toolkit.trainers.preflight --tasks "${SLURM_NTASKS:-2}"
status=$?
if [ "$status" -eq 124 ]; then
    echo "job: preflight: MPI did not start within 300 s; the job stops" >&2
elif [ "$status" -ne 0 ]; then
    echo "job: preflight failed with status $status; the job stops before the training" >&2
fi
[ "$status" -eq 0 ] || exit "$status"

mark ranks
srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --label --mpi=pmix \
    sh \
        -c 'exec "$0" --cgroup-manager=cgroupfs run ${PMI_FD:+"--preserve-fd=$PMI_FD"} "$@"' podman \
        --rm --pull=never --entrypoint= --env-host \
        --env=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --network=host \
        --ipc=host --pid=host --userns=keep-id --ulimit=host --security-opt=label=disable \
        --volume=/tmp:/tmp --volume=/work/ada/toolkit/runs/mnist-1:/work/ada/toolkit/runs/mnist-1 \
    localhost/toolkit/mnist-1:latest \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 \
    python -m toolkit.trainers.mnist --data /work/ada/toolkit/data/mnist
