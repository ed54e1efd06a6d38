#!/bin/sh
# Print the facts of a machine that toolkit's rules need. `sh -s` runs this script, which changes nothing.
#
# The script needs only POSIX sh: dash, busybox and bash run the same bytes on hosts, compute nodes and in images.
# The answer is a text: a version line, then a section for each question ("@ name", raw lines after "|", "@rc N"), then
# "@end". Nothing stays on disk. The answer contains no user name, address, token or whole environment.
# TOOLKIT_NODE=yes: this is a compute node, which does not ask Slurm's controller again; TOOLKIT_PLUGINS is then the
# folder of Slurm's plugins. TOOLKIT_SITE=yes: also print the facts of a site profile. TOOLKIT_ACCOUNTS=yes: of these
# facts, print only the accounts. TOOLKIT_MODULES, TOOLKIT_COMMANDS and TOOLKIT_FOLDERS are lists from the profile,
# separated by spaces. The answers have the order of the lists. A module is a name, or "swap,A,B".

LC_ALL=C
PATH="$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
export LC_ALL PATH
# grep up to 2.20 (RHEL 7) reads options from this variable; with --color=always, answers would contain colour codes.
unset GREP_OPTIONS

# Each question runs in a separate process group, so that all of its processes stop at the time limit.
last=
if command -v setsid >/dev/null; then
    apart() { exec setsid "$@"; }
    # This line keeps a shell between this script and the program. SIGKILL cannot end a program that waits for a
    # driver or a file system, but it ends the shell, so the script continues.
    last='
exit'
else
    apart() { exec "$@"; }
    set -m 2>/dev/null # dash and busybox refuse this option without a terminal
fi

# Write each answer to a file, because a process outside the group could keep a pipe open. Try several folders, because
# a login host may lack the folder in TMPDIR.
for base in "${TMPDIR:-/tmp}" /tmp /dev/shm "${HOME:-/}"; do
    folder=$base/toolkit-probe.$$
    (umask 077 && mkdir "$folder") 2>/dev/null && break
    folder=
done
trap '[ -z "$folder" ] || rm -rf "$folder"' EXIT
trap 'exit 143' HUP INT TERM

# Run a shell text for at most $1 seconds; the status is 124 if it took longer.
limit() {
    (apart sh -c "$2$last") </dev/null 2>&1 &
    asked=$!
    # SIGKILL, because a program may ignore SIGTERM.
    (apart sh -c "sleep $1; kill -9 -$asked || kill -9 $asked") </dev/null >/dev/null 2>&1 &
    watch=$!
    wait "$asked" 2>/dev/null
    status=$?
    { kill -9 "-$watch" || kill -9 "$watch"; } 2>/dev/null
    wait "$watch" 2>/dev/null
    [ "$status" -eq 137 ] && status=124
    return "$status"
}

# Remove the home folder, the user's name and network addresses from every answer.
escaped() { printf '%s\n' "$1" | sed 's/[][\\.*^$|]/\\&/g'; }
home=$(escaped "${HOME:-/}") person=$(escaped "$(id -un 2>/dev/null)")
real_home=$(escaped "$(readlink -f "${HOME:-/}" 2>/dev/null)")
case $home in / | '') home=/nonexistent ;; esac
case $real_home in / | '') real_home=$home ;; esac
# Keep a user name that is also an ordinary word, such as "gpu", because its removal would damage the answers.
case $person in
    '' | root | bin | sys | lib | gpu | cpu | hpc | test | debug | batch | slurm | munge | mpi | openmpi | mpich | pmix | none) person=nobody ;;
    *) ! grep -q -i -w -e "$person" /etc/os-release 2>/dev/null || person=nobody ;;
esac
# The answers do not need the machine's name, because toolkit gets the name of a compute node separately.
host=$(escaped "$(uname -n 2>/dev/null | sed 's/\..*//')")
[ -n "$host" ] || host=localhost
case $person in ? | ??) alone=nobody ;; *) alone=$person ;; esac
address='[0-9]\{1,3\}\.[0-9]\{1,3\}\.[0-9]\{1,3\}\.[0-9]\{1,3\}'
hexes='[0-9A-Fa-f]\{1,4\}:[0-9A-Fa-f]\{1,4\}:[0-9A-Fa-f]\{1,4\}:[0-9A-Fa-f:]*'
# From values that the user chose, also remove the machine's name and words that look like a key.
chosen() {
    case $question in
        environment | temporary | mca-params)
            sed -e "s|\([^A-Za-z0-9]\)$host\([^A-Za-z0-9]\)|\1-\2|g" -e "s|\([^A-Za-z0-9]\)$host\$|\1-|" \
                -e 's/[A-Za-z0-9]\{20,\}/HIDDEN/g'
            ;;
        *) cat ;;
    esac
}
# Keep a kernel release that looks like an address: 6.6.87.2-microsoft-standard-WSL2.
written() {
    case $question in kernel) quad='no address' ;; *) quad=$address ;; esac
    chosen | sed \
        -e "s|$home\([^A-Za-z0-9_.-]\)|~\1|g" -e "s|$home\$|~|" \
        -e "s|$real_home\([^A-Za-z0-9_.-]\)|~\1|g" -e "s|$real_home\$|~|" \
        -e "s|/$person/|/-/|g" -e "s|/$person\$|/-|" \
        -e "s|^$alone\([^A-Za-z0-9]\)|-\1|" -e "s|\([^A-Za-z0-9]\)$alone\$|\1-|" \
        -e "s|\([^A-Za-z0-9]\)$alone\([^A-Za-z0-9]\)|\1-\2|g" \
        -e "s|\([^A-Za-z0-9]\)$alone\([^A-Za-z0-9]\)|\1-\2|g" \
        -e "s#^$quad\([^A-Za-z0-9.]\)#ADDRESS\1#" -e "s#^$quad\$#ADDRESS#" \
        -e "s#\([^A-Za-z0-9._-]\)$quad\([^A-Za-z0-9.]\)#\1ADDRESS\2#g" \
        -e "s#\([^A-Za-z0-9._-]\)$quad\([^A-Za-z0-9.]\)#\1ADDRESS\2#g" \
        -e "s#\([^A-Za-z0-9._-]\)$quad\$#\1ADDRESS#" \
        -e "s#\([^A-Za-z0-9]\)$hexes#\1ADDRESS#g" -e "s#[0-9A-Fa-f:]*::[0-9A-Fa-f:.]*#ADDRESS#g" \
        -e 's/^/|/' -e '5000q'
}

# ask NAME SECONDS SHELL-TEXT. All questions share one time budget; later questions stay unanswered.
begun=$(date +%s 2>/dev/null) || begun=
TOOLKIT_SILENT=
export TOOLKIT_SILENT
ask() {
    question=$1 seconds=$2
    if [ -n "$begun" ]; then
        left=$((begun + 40 - $(date +%s)))
        [ "$seconds" -le "$left" ] || seconds=$left
    fi
    # After a timeout, ask Slurm's controller nothing more, because the other questions need the time.
    case $question in slurm-config | partitions | features) [ -z "$TOOLKIT_SILENT" ] || seconds=0 ;; esac
    printf '@ %s\n' "$1"
    if [ "$seconds" -le 0 ]; then
        status=124
    elif [ -n "$folder" ]; then
        limit "$seconds" "$3" >"$folder/answer"
        status=$?
        [ -s "$folder/answer" ] && written <"$folder/answer"
        [ "$(wc -l <"$folder/answer")" -le 5000 ] || status=124
    else
        answer=$(limit "$seconds" "$3")
        status=$?
        [ -n "$answer" ] && printf '%s\n' "$answer" | written
    fi
    printf '@rc %d\n' "$status"
    case $question$status in slurm-config124 | partitions124) TOOLKIT_SILENT=yes ;; esac
}

# Print the values of variables that affect the start of MPI, and the names of some other variables, but no secrets.
# shellcheck disable=SC2016 # the text is for another shell
variables='
    awk '"'"'
        {
            name = $0
            if (sub(/=.*/, "", name) == 0 || name !~ /^[A-Za-z_][A-Za-z0-9_]*$/) next
            if (toupper(name) ~ /TOKEN|SECRET|PASSW|CREDENTIAL|_KEY|USERNAME/) next
        }
        name ~ /^(OMPI_MCA_|PMIX_MCA_|PRTE_MCA_)/ && name ~ /_uri$|transports$|env_list|wdir$|hostname/ {
            print name
            next
        }
        name ~ /^(OMPI_MCA_|PMIX_MCA_|PRTE_MCA_)/ ||
        name ~ /^(OPAL_PREFIX|OPAL_LIBDIR|PMIX_PREFIX|PMIX_INSTALL_PREFIX|PRTE_PREFIX|PMIX_VERSION|SLURM_MPI_TYPE)$/ ||
        name ~ /^(APPTAINER|SINGULARITY)(_BIND|_BINDPATH|ENV_LD_LIBRARY_PATH)$/ {
            print
            next
        }
        name ~ /^(UCX|FI|NCCL|HOROVOD|I_MPI|MPICH|MPIR|MV2|HYDRA|APPTAINER|APPTAINERENV|SINGULARITY|SINGULARITYENV)_[A-Z0-9_]*$/ ||
        name ~ /^(LD_LIBRARY_PATH|LD_PRELOAD|PYTHONPATH|PYTHONHOME|TMPDIR|PMIX_SERVER_TMPDIR)$/ {
            print name
        }'"'"'
'

# Set $launchers to all MPI launchers on PATH, each program once; the launcher that the shell finds comes first.
# shellcheck disable=SC2016
find_launchers='
    launchers= seen=" " IFS=:
    set -f
    folders=$(for folder in $PATH; do printf "%s\n" "$folder"; done)
    set +f
    IFS="
"
    for pattern in mpirun mpiexec "mpirun.*" "mpiexec.*"; do
        for folder in $folders; do
            for file in "$folder"/$pattern; do
                [ -f "$file" ] && [ -x "$file" ] || continue
                real=$(readlink -f "$file")
                case $seen in *" $real "*) continue ;; esac
                seen="$seen$real "
                launchers="$launchers$file
"
            done
        done
    done
'

# Start with a line break, because a login shell may have printed text without one at the end.
printf '\ntoolkit-probe/1\n'

ask architecture 2 'uname -m'
ask kernel 2 'uname -r'
ask os-release 2 'cat /etc/os-release || cat /usr/lib/os-release'
ask glibc 2 'getconf GNU_LIBC_VERSION || ldd --version | head -n 1'

# The first questions only read files, so that a busy machine answers them before slow questions use up the time.
# Print only the first processor of /proc/cpuinfo. The file smt/control shows whether hardware threads are off.
# shellcheck disable=SC2016
ask cpu 2 '
    awk "/^(flags|vendor_id|siblings|cpu cores)/ { print } /^\$/ { exit }" /proc/cpuinfo || exit
    grep -q "^vendor_id" /proc/cpuinfo && sed "s/^/smt /" /sys/devices/system/cpu/smt/control 2>/dev/null
    true'
# shellcheck disable=SC2016
ask network 2 'ls /sys/class/net
    for folder in /sys/class/net/*; do
        [ -d "$folder" ] || continue
        printf "state %s %s\n" "${folder##*/}" "$(cat "$folder/operstate" 2>/dev/null)"
    done
    {
        # Leave out link-local addresses (169.254), which lead to the management controller of the machine.
        awk "NR > 1 && \$2 !~ /FEA9\$/ { print \$1 }" /proc/net/route
        # For a machine with only IPv6, print interfaces with a default route. An unreachable route has the name lo.
        awk "\$1 ~ /^0+\$/ && \$2 == \"00\" && \$NF != \"lo\" { print \$NF }" /proc/net/ipv6_route 2>/dev/null
    } | sort -u | sed "s/^/route /"
    ls /sys/class/infiniband 2>/dev/null | sed "s/^/infiniband /"
    # Print whether a device uses InfiniBand or Ethernet (RoCE), because its name does not show this.
    for file in /sys/class/infiniband/*/ports/*/link_layer; do
        [ -r "$file" ] || continue
        device=${file#/sys/class/infiniband/}
        printf "link %s %s\n" "${device%%/*}" "$(cat "$file" 2>/dev/null)"
        printf "port %s %s\n" "${device%%/*}" "$(cat "${file%link_layer}state" 2>/dev/null)"
    done
    true'
# shellcheck disable=SC2016
ask fabrics 2 '
    for device in /dev/cxi[0-9]* /sys/class/cxi/* /dev/kgni[0-9]* /sys/class/gni/* /dev/hfi1_[0-9]* \
        /sys/class/infiniband/*; do
        [ -e "$device" ] || continue
        driver=$(readlink -f "$device/device/driver" 2>/dev/null)
        printf "device %s %s\n" "$device" "${driver##*/}"
    done'
# shellcheck disable=SC2016
ask libfabric 2 'command -v ldconfig >/dev/null || exit 127; ldconfig -p | sed -n "s/.*libfabric\.so\.1 .*=> //p"'
# shellcheck disable=SC2016
ask memory 2 'printf "locked %s\n" "$(ulimit -l)"; df -Pk /dev/shm | sed -n "2s/^[^ ]* *\([0-9]*\).*/shm \1/p"'
# shellcheck disable=SC2016
ask neighbours 2 '
    [ -r /proc/sys/kernel/yama/ptrace_scope ] && printf "ptrace_scope %s\n" "$(cat /proc/sys/kernel/yama/ptrace_scope)"
    [ -e /dev/xpmem ] && printf "xpmem yes\n" || printf "xpmem no\n"
    for socket in /run/munge/munge.socket.2 /var/run/munge/munge.socket.2; do
        [ -S "$socket" ] && printf "munge %s\n" "$socket" && break
    done
    true'
# shellcheck disable=SC2016
ask temporary 2 '
    [ -n "${TMPDIR-}" ] || exit 0
    printf "TMPDIR=%s\n" "$TMPDIR"
    [ -d "$TMPDIR" ] && [ -w "$TMPDIR" ] && printf "usable yes\n" || printf "usable no\n"'
# Packages in the home folder, which Python finds before the packages of an image.
# shellcheck disable=SC2016
ask user-packages 2 '
    for folder in "$HOME"/.local/lib/python[0-9]*/site-packages; do
        [ -d "$folder" ] || continue
        release=${folder%/site-packages}
        release=${release##*/python}
        printf "python %s\n" "$release"
        for name in mpi4py numpy torch tensorflow horovod mpich openmpi impi_rt mpi4jax; do
            for info in "$folder/$name"-[0-9]*.dist-info "$folder/$name"-[0-9]*.egg-info; do
                [ -e "$info" ] && printf "package %s %s\n" "$release" "${info##*/}"
            done
        done
    done
    true'
# Settings files in the home folder, which containers mount. Print only parameters of MPI and PMIx frameworks.
# shellcheck disable=SC2016
ask mca-params 2 '
    for file in "$HOME/.openmpi/mca-params.conf" "$HOME/.pmix/mca-params.conf"; do
        [ -e "$file" ] || continue
        printf "file %s\n" "$file"
        awk '"'"'
            /^[ \t]*(accelerator|bfrops|bml|btl|coll|common|crs|ess|fbtl|fcoll|fs|gds|grpcomm|hwloc|if|io|mca|memory|mpi|mpool|mtl|oob|op|opal|ompi|orte|osc|patcher|pcompress|pif|plm|pmix|pmdl|pml|pnet|prte|psec|psensor|ptl|ras|rcache|rmaps|routed|schizo|sharedfp|shmem|smsc|state|threads|topo|vprotocol)(_[A-Za-z0-9_]*)?[ \t]*=/ {
                name = $0
                sub(/^[ \t]*/, "", name)
                sub(/[ \t]*=.*/, "", name)
                if (tolower(name) ~ /token|secret|passw|credential|_key|_uri|env_list/) next
                value = $0
                sub(/^[^=]*=[ \t]*/, "", value)
                print "set " name " = " value
            }'"'"' "$file" 2>/dev/null || printf "unreadable %s\n" "$file"
    done'
ask environment 2 "env | {
    $variables
    }"

if [ -z "${TOOLKIT_NODE-}" ]; then
    ask slurm 5 'sinfo --version || srun --version'
    ask mpi-list 5 'srun --mpi=list'
    # shellcheck disable=SC2016 # the text is for another shell
    ask schedulers 2 '
        command -v bsub >/dev/null && printf "lsf\n"
        command -v flux >/dev/null && printf "flux\n"
        command -v qsub >/dev/null || exit 0
        command -v pbsnodes >/dev/null && printf "pbs\n" || printf "grid-engine\n"'
    ask slurm-config 5 'scontrol show config | grep -E "^ *(MpiDefault|MpiParams|ProctrackType|TaskPlugin|SlurmdSpoolDir|TmpFS|\
PluginDir|JobContainerType|NamespaceType|AuthType|SwitchType|LaunchParameters|PropagateResourceLimits|PropagateResourceLimitsExcept|\
ClusterName|AccountingStorageEnforce|JobRequeue|PreemptMode|MaxArraySize|PMIx[A-Za-z]*) *="'
    ask partitions 5 'sinfo -h -e -o "%P|%D|%a|%c|%m|%G|%l|%s|%X|%Y|%Z"'
fi

# The accounts of the user. The name of the user is removed as in all answers.
# shellcheck disable=SC2016
if [ -n "${TOOLKIT_SITE-}${TOOLKIT_ACCOUNTS-}" ] && [ -z "${TOOLKIT_NODE-}" ]; then
    ask accounts 5 '
        command -v sacctmgr >/dev/null || exit 127
        person=$(id -un)
        sacctmgr -n -P show user "$person" format=DefaultAccount | sed -n "/./s/^/default /p"
        said=$(sacctmgr -n -P show assoc where user="$person" format=Account,Partition,QOS) || exit 1
        printf "%s\n" "$said" | sed -n "/./s/^/may /p"'
fi
if [ -n "${TOOLKIT_SITE-}" ] && [ -z "${TOOLKIT_NODE-}" ]; then
    # shellcheck disable=SC2016
    ask features 5 'said=$(sinfo -h -o "%R|%f") || exit; printf "%s\n" "$said" | sort -u'
    # Run a login shell, which has the command "module". It loads the modules one after the other, as a job does.
    # The output of its login files precedes "asked now".
    # shellcheck disable=SC2016
    ask modules 10 '
        command -v bash >/dev/null || exit 127
        text=$(
            cat <<"@text@"
                printf "asked now\n"
                if [ -n "${LMOD_CMD-}" ]; then
                    printf "system lmod %s\n" "${LMOD_VERSION-}"
                elif type module >/dev/null 2>&1; then
                    printf "system modules %s\n" "$(module --version 2>&1 | grep -o "[0-9][0-9.]*" | head -n 1)"
                else
                    printf "system none\n"
                fi
                if type module >/dev/null 2>&1; then
                    # Use one call, because each call may search all modules of a centre.
                    module -t avail apptainer singularity tacc-apptainer Apptainer Singularity 2>&1 |
                        grep -i -E "^([A-Za-z0-9_.+-]+/)*(apptainer|tacc-apptainer|singularity(-?(ce|pro))?)\
(/[A-Za-z0-9_.+-]+)?(\([A-Za-z]+\))?$" | sort -u | sed "s/^/offers /"
                fi
                said=$(mktemp) || exit 1
                for name in ${TOOLKIT_MODULES-}; do
                    words=$(printf "%s" "$name" | tr , " ")
                    case $words in swap*) ;; *) words="load $words" ;; esac
                    if ! type module >/dev/null 2>&1; then
                        printf "failed there is no command module\n"
                    elif module $words >"$said" 2>&1 &&
                        ! grep -q -i -E "unable to locate|unknown module|(^|[^a-z])error:" "$said"; then
                        printf "loaded\n"
                    else
                        printf "failed %s\n" "$(grep "[A-Za-z]" "$said" | head -n 2 | paste -s -d " " -)"
                    fi
                done
                rm -f "$said"
                for name in apptainer singularity ${TOOLKIT_COMMANDS-}; do
                    printf "command %s\n" "$(command -v "$name")"
                done
                printf "asked yes\n"
@text@
        )
        bash -lc "$text"'
fi

# The folders of the profile and the usual folders of centres: in a login shell on the login host, in a job on a node.
# shellcheck disable=SC2016
if [ -n "${TOOLKIT_SITE-}" ]; then
    ask places 5 '
        text=$(
            cat <<"@text@"
                printf "asked now\n"
                for name in HOME WORK SCRATCH PROJECT STORE PSCRATCH CSCRATCH CINECA_SCRATCH WORKDIR; do
                    eval "value=\${$name-}"
                    case $value in /*) [ -d "$value" ] && [ -w "$value" ] || continue ;; *) continue ;; esac
                    printf "variable %s %s\n" "$name" "$value"
                    printf "mount %s %s\n" "$name" "$(df -P "$value" | sed -n "2s/.*% //p")"
                    printf "kind %s %s\n" "$name" "$(stat -f -c %T "$value")"
                done
                for name in ${TOOLKIT_FOLDERS-}; do
                    eval "value=\"$name\""
                    [ -d "$value" ] && printf "there yes\n" || printf "there no\n"
                done
                printf "asked yes\n"
@text@
        )
        if [ -z "${TOOLKIT_NODE-}" ]; then
            command -v bash >/dev/null && exec bash -lc "$text"
            exec sh -lc "$text"
        fi
        sh -c "$text"
        for folder in "${TMPDIR-}" /local /scratch/local /local/scratch /localscratch /local_scratch /lscratch /nvme \
            /mnt/nvme /ssd /tmp; do
            [ -n "$folder" ] && [ -d "$folder" ] && [ -w "$folder" ] || continue
            case $(stat -f -c %T "$folder") in
                ext* | xfs | btrfs | zfs | overlay* | f2fs) printf "disk %s\n" "$folder" ;;
            esac
        done'
fi

# The libpmix that Slurm opens: the path in its plugin, else the path that the loader finds.
# shellcheck disable=SC2016
ask pmix 5 '
    folder=${TOOLKIT_PLUGINS-}
    [ -n "${TOOLKIT_NODE-}$TOOLKIT_SILENT" ] ||
        folder=$(scontrol show config 2>/dev/null | sed -n "s/^PluginDir *= *//p")
    seen= plugins=" "
    # PluginDir may be several folders, separated by colons (slurm.conf(5)).
    for plugin in $(for folder in $(printf "%s\n" "$folder" | tr : " "); do
        printf "%s\n" "$folder"/mpi_pmix.so "$folder"/mpi_pmix_v*.so
    done) \
        /usr/lib/*/slurm*/mpi_pmix.so /usr/lib/*/slurm*/mpi_pmix_v*.so \
        /usr/lib64/slurm/mpi_pmix.so /usr/lib64/slurm/mpi_pmix_v*.so; do
        [ -f "$plugin" ] || continue
        real=$(readlink -f "$plugin")
        case $plugins in *" $real "*) continue ;; esac
        plugins="$plugins$real "
        printf "plugin %s\n" "$real"
        for found in $({
            grep -a -o "/[A-Za-z0-9_./+-]*/libpmix\.so[0-9.]*" "$plugin" | sed "s/^/named=/"
            ldd "$plugin" 2>/dev/null | sed -n "s/.*libpmix\.so[0-9.]* => \(\/[^ ]*\).*/linked=\1/p"
        } | sort -u); do
            file=${found#*=}
            real=$(readlink -f "$file")
            printf "%s %s\n" "${found%%=*}" "${real:-$file}"
            seen="$seen ${real:-$file}"
        done
    done
    for file in $seen $(ldconfig -p 2>/dev/null | sed -n "s/.*libpmix\.so[0-9.]* .*=> //p") \
        /usr/lib/*/pmix2/lib/libpmix.so.2 /usr/lib64/libpmix.so.2 /usr/local/lib/libpmix.so.2 /opt/pmix/lib/libpmix.so.2; do
        [ -f "$file" ] && readlink -f "$file"
    done | sort -u | while read -r file; do
        printf "file %s\n" "$file"
        grep -a -o "OpenPMIx [0-9][0-9.a-z]*" "$file" | head -n 1 | sed "s/^/says /"
    done'

# shellcheck disable=SC2016
ask launchers 5 "$find_launchers"'
    for path in $launchers; do
        printf "path %s\nreal %s\n" "$path" "$(readlink -f "$path")"
        "$path" --version </dev/null 2>&1 | grep -v -E "^ERROR: ld\.so: object|no version information available" | head -n 12 | sed "s/^/says /"
    done'
# The variables that mpirun sets for a rank, without a job. Root needs an extra option.
ask launcher-environment 5 "
    command -v mpirun >/dev/null || exit 127
    for name in \$(env | sed -n 's/^\\(SLURM_[A-Za-z0-9_]*\\)=.*/\\1/p'); do unset \"\$name\"; done
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \\
    PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 1 env | {
    $variables
    } | sed '/^PMIX_VERSION=/!s/=.*//'"
# The MPI library of each launcher, which toolkit may mount into a container. It is beside the launcher, or the loader
# finds it.
# shellcheck disable=SC2016
ask mpi-libraries 8 "$find_launchers"'
    known=" " n="[0-9]"
    # Convert the output of ldd to lines with a name and a path.
    closure() {
        sed -n -e "s/^[[:space:]]*\(lib[^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p" -e "s/^[[:space:]]*\(lib[^ ]*\) => not found.*/\1/p"
    }
    # Print the files of such a list without the C library, because only the versions that other files need count.
    foreign() {
        sed -n -e "/^lib\(c\|m\|dl\|rt\|pthread\|util\|resolv\|anl\|nsl\)\.so\./d" -e "s/^[^ ]* \(\/.*\)/\1/p"
    }
    # Print the folders of the libraries with their real paths, because toolkit mounts no folder outside the prefix.
    places() {
        printf "%s\n" "$1" | sed -n "s/^[^ ]* //p" | sed "s#/[^/]*\$##" | sort -u | while read -r place; do
            [ -d "$place" ] && printf "folder %s %s\n" "$place" "$(readlink -f "$place")"
        done
    }
    describe() {
        real=$(readlink -f "$1")
        case $known in *" $real "*) return ;; esac
        known="$known$real "
        folder=${1%/*}
        printf "library %s\nfound %s\n" "$real" "$1"
        grep -a -o "lib[a-z]*mpi[a-z0-9_]*\.so\.[0-9][0-9]*" "$real" | sort -u | sed "s/^/names /"
        grep -a -o -E "ompi_mpi_comm_world|I_MPI_ROOT|MVAPICH|CRAY MPICH|ParaStation|MPICH Version|MPIR_CVAR_|PMIx_Init|pmix3x|PMI_FD|PMI2_Init|MPIDI_POSIX_am_" \
            "$real" | sort -u | sed "s/^/holds /"
        # Match a whole string, because the configure options contain similar text.
        tr "\000" "\n" <"$real" | grep -a -x -E "ch[34]:[a-z0-9]+([ ,][a-z0-9]+)*" | head -n 1 | sed "s/^/device /"
        needs=$(ldd "$real" 2>/dev/null) && printf "followed yes\n"
        needs=$(printf "%s\n" "$needs" | closure)
        printf "%s\n" "$needs" | sed -n "/./s/^/needs /p"
        files=$(printf "%s\n" "$needs" | foreign)
        grep -a -h -o -E "mca_(btl|mtl|pml|pmix)_[a-z0-9]+_component" "$real" \
            $(printf "%s\n" $files | sed -n "/\/libopen-[a-z]*\.so/p") | sort -u | sed "s/^/has /"
        for plugins in "${real%/*}/openmpi" "${real%/*}"/openmpi[0-9]* "$folder"/openmpi "$folder"/openmpi[0-9]* \
            "$folder"/openmpi/lib/openmpi*; do
            set -- "$plugins"/mca_*.so
            [ -e "$1" ] || continue
            printf "plugins %s\n" "$(readlink -f "$plugins")"
            # Print the components that connect ranks and send messages. A component may need further libraries.
            told=$(printf "%s\n" "$needs" "no-library" | sed -n "/./s/^\([^ ]*\).*/\1 /p")
            for file in "$plugins"/mca_pmix_*.so "$plugins"/mca_pml_*.so "$plugins"/mca_mtl_*.so "$plugins"/mca_btl_*.so; do
                [ -e "$file" ] || continue
                component=${file##*/}
                printf "component %s\n" "$component"
                taken=$(ldd "$file" 2>/dev/null | closure | grep -v -F "$told")
                printf "%s\n" "$taken" | sed -n "/./s/^/takes $component /p"
                needs=$(printf "%s\n" "$needs" "$taken" | sed "/^$/d" | sort -u)
                files=$(printf "%s\n" "$files" "$file" "$(printf "%s\n" "$taken" | foreign)" | sed "/^$/d" | sort -u)
            done
            break
        done
        places "$needs"
        for file in $files; do
            case $file in
                */libopen-pal.so*) grep -a -o -E "PMIx_Init|pmix3x" "$file" | sort -u | sed "s/^/holds /" ;;
                */libfabric.so*) grep -a -o -E "FABRIC_[0-9]{1,3}\.[0-9]{1,3}" "$file" | sort -u | sed "s/^FABRIC_/fabric /" ;;
                */libucp.so*) grep -a -o -E "(^|[^0-9.])1\.[0-9]{1,3}\.[0-9]{1,3}" "$file" | sed "s/^[^1]*/ucx /" | sort -u ;;
            esac
        done
        grep -a -l "[$]ORIGIN" "$real" $files | sed "s/^/origin /"
        # Print the newest version that each file needs, because toolkit may mount only some of the files.
        grep -a -H -o -E "GLIBC_(2\.[0-9.]*[0-9]|ABI_DT_RELR)" "$real" $files | sort -u | awk "{
            at = match(\$0, /:GLIBC_[^:]*\$/); file = substr(\$0, 1, at - 1); said = substr(\$0, at + 1)
            split(substr(said, 7), part, \".\")
            size = part[1] * 1000000 + part[2] * 1000 + part[3]
            if (said ~ /RELR/) print \"glibc\", said, file
            else if (size >= most[file]) { most[file] = size; newest[file] = said }
        } END { for (file in newest) print \"glibc\", newest[file], file }" | sort
        printf "described yes\n"
    }
    for path in $launchers; do
        real=$(readlink -f "$path")
        printf "launcher %s\n" "$path"
        here=
        for prefix in "${real%/*/*}" "${path%/*/*}"; do
            [ "$prefix" = "$here" ] && continue
            here=$prefix
            for file in "$prefix"/lib/libmpi.so.$n "$prefix"/lib/libmpi.so.$n$n \
                "$prefix"/lib64/libmpi.so.$n "$prefix"/lib64/libmpi.so.$n$n "$prefix"/lib/release/libmpi.so.$n$n \
                "$prefix"/lib/*-linux-gnu*/libmpi.so.$n$n \
                "$prefix"/lib/libmpich.so.$n$n "$prefix"/lib64/libmpich.so.$n$n "$prefix"/lib/*-linux-gnu*/libmpich.so.$n$n; do
                [ -f "$file" ] || continue
                printf "beside %s\n" "$(readlink -f "$file")"
                describe "$file"
            done
        done
    done
    # Libraries without an mpirun on PATH: from Cray, from variables of modules, from LD_LIBRARY_PATH, from mpicc.
    printf "launcher -\n"
    newest() { for file in "$@"; do [ -f "$file" ] && printf "%s\n" "$file"; done | sort -V | tail -n 1; }
    count=0
    for file in "$CRAY_MPICH_DIR"/lib-abi-mpich/libmpi.so.$n$n "$(newest /opt/cray/pe/mpich/*/ofi/gnu/*/lib-abi-mpich/libmpi.so.$n$n)" \
        $(printf "%s\n" "$MPI_HOME" "$MPI_ROOT" "$MPICH_DIR" "$I_MPI_ROOT" "$MVAPICH2_HOME" "$MPI_DIR" "$EBROOTPSMPI" "$EBROOTIMPI" \
            "$EBROOTOPENMPI" "$EBROOTMVAPICH2" | sed -n "s#^/[^ ]*#&/lib/libmpi.so &/lib64/libmpi.so &/lib/release/libmpi.so#p") \
        $(printf "%s\n" "$LD_LIBRARY_PATH" | tr : "\n" | sed -n "s#^/[^ ]*#&/libmpi.so#p") \
        $(mpicc -show 2>/dev/null | tr " " "\n" | sed -n "s#^-L\(/.*\)#\1/libmpi.so#p"); do
        for file in "$file" "$file".$n "$file".$n$n "${file%/*}"/libmpi_abi.so.$n; do
            [ -f "$file" ] || continue
            case $file in *.so) continue ;; /lib/* | /lib64/* | /usr/lib/* | /usr/lib64/*) continue ;; esac
            case $known in *" $(readlink -f "$file") "*) continue ;; esac
            count=$((count + 1))
            [ "$count" -le 4 ] || break 2
            printf "beside %s\n" "$(readlink -f "$file")"
            describe "$file"
        done
    done
    printf "launcher\n"
    [ -n "$launchers" ] && for file in $(ldconfig -p 2>/dev/null | sed -n "s/.*libmpi\(ch\)*\.so\.[0-9]* .*=> //p"); do
        [ -f "$file" ] || continue
        printf "beside %s\n" "$(readlink -f "$file")"
        describe "$file"
    done
    true'

# shellcheck disable=SC2016
ask runtime 5 '
    for name in apptainer singularity; do
        path=$(command -v "$name") && break
    done
    for name in podman-hpc shifter sarus enroot ch-run udocker; do
        command -v "$name" >/dev/null && printf "other %s\n" "$name"
    done
    [ -n "${TOOLKIT_NODE-}" ] || ! srun --help 2>/dev/null | grep -q -e "--environment=" || printf "other ce\n"
    command -v ch-run >/dev/null && printf "version ch-run %s\n" "$(ch-run --version 2>&1 | head -n 1)"
    if [ -z "$path" ]; then
        [ -n "${TOOLKIT_NODE-}" ] || ! srun --help 2>/dev/null | grep -q -e --container-image || printf "other pyxis\n"
        exit 127
    fi
    printf "path %s\n" "$path"
    "$path" --version
    settings=$("$path" buildcfg 2>/dev/null)
    libexec=$(printf "%s\n" "$settings" | sed -n "s/^LIBEXECDIR=//p")
    sysconf=$(printf "%s\n" "$settings" | sed -n "s/^SYSCONFDIR=//p")
    for folder in "$libexec"/apptainer/bin "$libexec"/singularity/bin; do
        [ -d "$folder" ] || continue
        printf "starter %s\n" "$folder"
        [ -u "$folder/starter-suid" ] && printf "setuid yes\n" || printf "setuid no\n"
        [ -x "$folder/squashfuse_ll" ] && printf "squashfuse %s\n" "$folder/squashfuse_ll"
    done
    # The runtime accepts indented lines, and lists with commas.
    configured=$(cat "$sysconf"/apptainer/apptainer.conf "$sysconf"/singularity/singularity.conf 2>/dev/null |
        sed "s/^[[:space:]]*//")
    printf "%s\n" "$configured" |
        grep -E "^(mount tmp|mount home|mount dev|mount hostfs|allow setuid|allow setuid-mount squashfs|allow kernel squashfs|sif fuse|\
enable overlay|enable underlay|sessiondir max size|user bind control|oci mode|max loop devices|shared loop devices|always use nv|always use rocm|\
allow container (sif|dir|squashfs)) *=" |
        sed "s/^/setting /"
    # Print whether the site allows only some images, but not the names and owners of these images.
    printf "%s\n" "$configured" |
        sed -n -e "/= *NULL *\$/d" -e "s/^\(limit container [a-z]*\) *= *[^ ].*/setting \1 = set/p"
    grep -q -E "^ *activated *= *true" "$sysconf"/apptainer/ecl.toml 2>/dev/null && printf "setting execution control list = set\n"
    # The runtime mounts these folders into every container, so the targets of links must exist, too.
    printf "%s\n" "$configured" | sed -n "s/^bind path *= *//p" | tr , "\n" | while read -r bound; do
        [ -n "$bound" ] || continue
        why=$(ls -dL -- "${bound%%:*}" 2>&1 >/dev/null) && continue
        case $why in *"No such file"*) printf "unbound %s\n" "$bound" ;; *) printf "unseen %s\n" "$bound" ;; esac
    done
    true'
# Rootless podman: whether the user has subordinate user IDs for the other users of a container, and a program that maps
# these IDs. Run only `podman --version`, because other podman commands leave a process running.
# shellcheck disable=SC2016
ask podman 3 '
    path=$(command -v podman) || exit 127
    printf "path %s\n" "$path"
    "$path" --version
    command -v crun >/dev/null && printf "setting crun = yes\n"
    command -v newuidmap >/dev/null || printf "setting newuidmap = no\n"
    command -v pasta >/dev/null || command -v slirp4netns >/dev/null || printf "setting private network = no\n"
    ranges=yes
    for file in /etc/subuid /etc/subgid; do
        grep -q -E "^($(id -un)|$(id -u)):" "$file" 2>/dev/null || ranges=no
    done
    [ "$ranges" = yes ] || ! command -v getsubids >/dev/null || ! getsubids "$(id -un)" >/dev/null 2>&1 || ranges=yes
    printf "setting subordinate ids = %s\n" "$ranges"
    true'
# shellcheck disable=SC2016
ask user-namespaces 3 '
    for name in user/max_user_namespaces kernel/unprivileged_userns_clone kernel/apparmor_restrict_unprivileged_userns; do
        [ -r "/proc/sys/$name" ] && printf "%s = %s\n" "$name" "$(cat /proc/sys/$name)"
    done
    [ "$(id -u)" -eq 0 ] && printf "asked as root\n"
    # AppArmor restricts user namespaces, except for programs whose profile allows them (apparmor.d(5), userns rules).
    if [ -r /etc/apparmor.d ]; then
        grep -ls "/bin/starter" /etc/apparmor.d/* | while read -r file; do
            grep -Eq "^[[:space:]]*userns[[:space:]]*," "$file" && printf "profile %s\n" "$file"
        done
        printf "profiles read\n"
    fi
    command -v unshare >/dev/null || exit 127
    said=$(unshare -Ur true 2>&1) && exit
    status=$?
    # unshare has -r since util-linux 2.24 (its release notes).
    case $said in *"invalid option"*) unshare -U true; exit ;; esac
    printf "%s\n" "$said"
    exit "$status"'
ask squashfuse 2 'command -v squashfuse_ll || command -v squashfuse'
# The release of libfuse3, which squashfuse loads. The file name of the library contains the release.
# shellcheck disable=SC2016
ask fuse3 2 '
    { for file in $(ldconfig -p | sed -n "s/.*libfuse3\.so\.[0-9]* .*=> //p"); do readlink -f "$file"; done
      fusermount3 -V; } 2>/dev/null | sed -n "s/.*\(libfuse3\.so\.\|version: \)\([0-9][0-9.]*\)$/\2/p" | grep . || exit 127'
# squashfuse mounts an image through this device.
ask fuse-device 2 '
    [ -e /dev/fuse ] || { printf "open no: no such file\n"; exit 0; }
    (: <> /dev/fuse) 2>/dev/null && printf "open yes\n" || printf "open no: permission denied\n"'
# Kernel features with which a setuid runtime mounts an image: in use, built in, or available as a module.
# shellcheck disable=SC2016
ask kernel-mounts 3 '
    modules=/lib/modules/$(uname -r)
    for name in loop squashfs; do
        if [ "$name" = squashfs ] && grep -qw squashfs /proc/filesystems; then printf "has squashfs: /proc/filesystems\n"
        elif [ "$name" = loop ] && { [ -e /dev/loop-control ] || [ -b /dev/loop0 ]; }; then printf "has loop: /dev\n"
        elif grep -qs "/$name\.ko" "$modules/modules.builtin" "$modules/modules.dep"; then printf "has %s: %s\n" "$name" "$modules"
        elif [ -r "$modules/modules.dep" ]; then printf "lacks %s\n" "$name"
        fi
    done
    true'
# For MIG instances of a GPU, print the profile without the identifier.
# shellcheck disable=SC2016
ask gpu 8 '[ -e /proc/driver/nvidia/version ] || command -v nvidia-smi >/dev/null || exit 127
    cat /proc/driver/nvidia/version 2>/dev/null
    sed -n "s/^Model:[[:space:]]*/model /p" /proc/driver/nvidia/gpus/*/information 2>/dev/null
    nvidia-smi --query-gpu=driver_version,name --format=csv,noheader || exit
    parts=$(nvidia-smi -L 2>/dev/null) || exit 0
    printf "%s\n" "$parts" | sed -n "s/^[[:space:]]*MIG[[:space:]]*\([0-9][^[:space:]]*\).*/part \1/p"
    printf "parts listed\n"'
ask gpu-container 2 'command -v nvidia-container-cli || exit 127'
# AMD GPUs: the PCI devices of the driver, and the architecture of each GPU that the job may use.
# shellcheck disable=SC2016
ask gpu-amd 2 '
    for folder in /sys/bus/pci/drivers/amdgpu/*:*; do
        [ -r "$folder/device" ] && printf "device %s\n" "$(cat "$folder/device")"
    done
    for file in /sys/class/kfd/kfd/topology/nodes/*/properties; do
        awk "
            \$1 == \"vendor_id\" && \$2 == 4098 { amd = 1 }
            \$1 == \"gfx_target_version\" && \$2 > 0 { version = \$2 }
            END { if (amd && version) print \"gfx\", version }" "$file" 2>/dev/null
    done
    true'
# Libraries that --nv or --rocm mounts, and the releases of the C library that they need.
# shellcheck disable=SC2016
ask gpu-libraries 5 '
    command -v ldconfig >/dev/null || exit 127
    names="cuda\|cudadebugger\|nvidia-ml\|nvidia-ptxjitcompiler\|nvidia-nvvm"
    [ -d /sys/bus/pci/drivers/amdgpu ] && names="$names\|drm\|drm_amdgpu\|numa"
    for file in $(ldconfig -p 2>/dev/null |
        sed -n "s/.*lib\($names\)\.so[.0-9]* (.*x86-64.*=> //p
            s/.*lib\($names\)\.so[.0-9]* (.*AArch64.*=> //p"); do
        readlink -f "$file"
    done | sort -u | while read -r file; do
        printf "file %s\n" "$file"
        grep -a -o -E "GLIBC_(2\.[0-9.]*[0-9]|ABI_DT_RELR)" "$file" | sort -u | sed "s/^/glibc /"
    done'
printf '@end\n'
