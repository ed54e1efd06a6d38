#!/bin/sh
# Print "toolkit-state:HASH", a hash of everything on this machine that determines the answers of probe.sh. If the hash
# is unchanged, the answers are unchanged. The script takes a few milliseconds, needs only POSIX sh, and prints
# nothing but the hash.

LC_ALL=C
PATH="$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
export LC_ALL PATH

state() {
    uname -a
    cat /proc/sys/kernel/random/boot_id /proc/sys/user/max_user_namespaces /proc/sys/kernel/*userns*
    id
    # shellcheck disable=SC3045 # a shell without this option prints nothing
    ulimit -l
    # Leave out variables that differ from session to session.
    env | grep -v -E '^(SSH_[A-Z]*|XDG_[A-Z_]*|DBUS_[A-Z_]*|KRB5CCNAME|TERM|COLUMNS|LINES|SHLVL|PWD|OLDPWD|_)=' | sort
    # A new package changes the list of packages or the loader's cache. Containers on this machine have different hosts
    # files, and therefore different hashes.
    set -- /etc/hosts /etc/machine-id /etc/os-release /etc/ld.so.cache /var/lib/dpkg/status /var/lib/rpm/* \
        /usr/lib/sysimage/rpm/* /etc/subuid /etc/subgid /etc/apparmor.d /proc/driver/nvidia/version \
        "${SLURM_CONF:-/etc/slurm/slurm.conf}" /etc/slurm-llnl/slurm.conf /run/slurm/conf/slurm.conf \
        /etc/slurm/plugstack.conf* /etc/enroot/* /etc/containers/* /etc/apptainer/* /etc/singularity/* /usr/local/etc/apptainer/* /usr/local/etc/singularity/* \
        "$HOME"/.openmpi/mca-params.conf "$HOME"/.pmix/mca-params.conf "$HOME"/.local/lib/python*/site-packages
    for name in srun sinfo sbatch scontrol mpirun mpiexec mpicc apptainer singularity podman podman-hpc ch-run \
        enroot shifter sarus squashfuse fusermount3 nvidia-smi; do
        set -- "$@" "$(command -v "$name")"
    done
    # The path, device, inode and size, and the times of the last change of the content and of the inode, in seconds.
    stat -L -c '%n %d %i %s %Y %Z' -- "$@"
}

printf '\ntoolkit-state:%s\n' "$(state 2>/dev/null | sha256sum | cut -d ' ' -f 1)"
