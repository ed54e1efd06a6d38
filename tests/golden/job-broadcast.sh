#!/bin/bash
# Made by toolkit. Needs only Slurm, singularity and the image. Submit with: sbatch job.sh
#
# Launch mode srun-pmix: Open MPI 4.1.4 in the image uses PMIx 4.2.2, compatible with Slurm's PMIx 5.0.7
# The image is copied to the nodes.
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

command -v singularity > /dev/null || {
    echo "job: singularity is not on PATH of $(hostname); load the module of singularity or ask the centre" >&2
    exit 127
}

echo "job: $SLURM_JOB_ID, $SLURM_NTASKS ranks on $SLURM_JOB_NODELIST, mode srun-pmix"

image_file=/work/ada/toolkit/images/tf2.15-cpu-0123456789ab.sif
env_file=/work/ada/my.env
# Copy the image to a disk of each node, once per content. Ranks then start without the shared file system. If
# that fails, the job reads the shared file.
# shellcheck disable=SC2016
printf '%s' '#!/bin/sh
# Keep files on a disk of this node, each once per content: sh toolkit-broadcast.sh look|keep FOLDER MIB JOB [SHA BYTES]...
#
# look prints the SHA-256 of each missing file, and makes room: it deletes files that no job has used for an hour, the
# oldest first. keep renames each copy .SHA.JOB.part in the folder to its SHA-256, if the bytes of the copy are right.
step=$1 folder=$2 most=$(($3 * 1024)) job=$4
shift 4
umask 077
if ! mkdir -p "$folder" || ! [ -O "$folder" ]; then
    echo "job: $folder on $(hostname) belongs to another user" >&2
    exit 1
fi
if [ "$(stat -f -c %T "$folder")" = tmpfs ]; then
    echo "job: $folder on $(hostname) is in memory, which the job needs itself" >&2
    exit 1
fi
exec 9> "$folder/.lock" && flock 9 || exit 1
find "$folder" -name '"'"'.*.part'"'"' -mmin +60 -exec rm -f {} +
used() { du -sk "$folder" | cut -f1; }
free() { df -Pk "$folder" | awk '"'"'END { print $4 }'"'"'; }
wanted=0
absent=
while [ "$#" -ge 2 ]; do
    sha=$1 bytes=$2 part="$folder/.$1.$job.part"
    shift 2
    if [ -f "$folder/$sha" ] && [ "$(stat -c %s "$folder/$sha")" = "$bytes" ]; then
        touch "$folder/$sha"
        rm -f "$part"
    elif [ "$step" = look ]; then
        wanted=$((wanted + bytes / 1024 + 1))
        absent="$absent$sha
"
    elif echo "$sha  $part" | sha256sum --check --status 2> /dev/null; then
        mv "$part" "$folder/$sha" || exit 1
    else
        rm -f "$part"
        echo "job: the copy on $(hostname) is not the file that was sent" >&2
        exit 1
    fi
done
# At least 1 GiB stays free for the job itself.
while [ "$wanted" -gt 0 ] && { [ "$(used)" -gt $((most - wanted)) ] || [ "$(free)" -lt $((wanted + 1048576)) ]; }; do
    old=$(find "$folder" -maxdepth 1 -type f -name '"'"'[0-9a-f]*'"'"' -mmin +60 -printf '"'"'%T@ %p\n'"'"' | sort -n | head -n 1)
    if [ -z "$old" ]; then
        echo "job: $(hostname) has no room for $((wanted / 1024)) MiB in $folder" >&2
        exit 1
    fi
    rm -f "${old#* }"
done
printf %s "$absent"
' > toolkit-broadcast.sh || exit 1
on_each_node() {
    srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --label --mpi=none \
        sh ./toolkit-broadcast.sh "$1" /tmp/toolkit-"$(id -u)" 40960 "$SLURM_JOB_ID" abababababababababababababababababababababababababababababababab 1000 cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd 5
}
send() {
    local part
    part=/tmp/toolkit-"$(id -u)"/.$2.$SLURM_JOB_ID.part
    if command -v sbcast > /dev/null && sbcast --force "$1" "$part"; then
        return
    fi
    # Remove partial copies, which would fill the disk until the next job.
    # shellcheck disable=SC2016
    srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --label --mpi=none \
        sh -c 'cp -- "$1" "$2" || { rm -f -- "$2"; exit 1; }' copy "$1" "$part"
}
keep_local() {
    local absent began=$SECONDS
    absent=$(on_each_node look) || return
    case "$absent" in *abababababababababababababababababababababababababababababababab*) send "$image_file" abababababababababababababababababababababababababababababababab || return ;; esac
    case "$absent" in *cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd*) send "$env_file" cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd || return ;; esac
    [ -z "$absent" ] || on_each_node keep || return
    echo "job: each node has a local copy of the image after $((SECONDS - began)) s"
}
mark copy
if keep_local; then
    image_file=/tmp/toolkit-"$(id -u)"/abababababababababababababababababababababababababababababababab
    env_file=/tmp/toolkit-"$(id -u)"/cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd
else
    echo "job: the image was not copied to the nodes; ranks read the shared file" >&2
fi
mark copied

mark preflight
# Check whether MPI reports the number of ranks that were started. If not, stop before the training starts.
# --foreground sends one signal, to the launcher only, because an mpirun that gets two signals does not stop its ranks.
timeout --foreground --kill-after=10 300 \
    srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --label --mpi=pmix \
        env -u OMPI_MCA_btl \
        singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
            --bind "$env_file":/opt/toolkit-env:image-src=/,ro \
        "$image_file" \
        env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 'A=1 2' \
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
    env -u OMPI_MCA_btl \
    singularity exec --bind /work/ada/toolkit/runs/mnist-1 \
        --bind "$env_file":/opt/toolkit-env:image-src=/,ro \
    "$image_file" \
    env TOOLKIT_JOB_DIR=/work/ada/toolkit/runs/mnist-1 'A=1 2' \
    python -m toolkit.trainers.mnist --data /work/ada/toolkit/data/mnist
