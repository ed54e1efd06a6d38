#!/bin/sh
# Run the probe on this machine and, at the same time, on compute nodes under srun: sh -s NODES WAIT [PARTITION].
#
# NODES is a number, "all" (the idle or partly free nodes of the partition) or names in Slurm's notation.
# toolkit cancels the job if the job does not start within WAIT seconds, or does not finish within 20 further seconds.
# Standard output: the probe's answer for this machine, "toolkit-nodes/1", sinfo's lines about the nodes
# ("|name|state|partition"), srun's output (each line with the number of its task), srun's exit status ("@srun N") with
# its errors ("!line"), and "@nodesend".
# The script needs only POSIX sh. toolkit replaces the line "@probe@" below with the probe script.

LC_ALL=C
PATH="$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
export LC_ALL PATH

script() {
    cat <<'@toolkit@'
@probe@
@toolkit@
}

# Print the nodes that can run a job, one per line, for one partition or for several, separated by commas. A node
# with a mark, such as "idle~", is switched off or does not answer.
available() {
    awk -F'|' -v partition="$2" '
        { name = $3; sub(/\*$/, "", name) }
        (partition == "" ? name != $3 : index("," partition ",", "," name ",")) && ($2 == "idle" || $2 == "'"$3"'") { print $1 }
    ' "$1" | sort -u
}

# Stop the process for which the script waits. Send SIGTERM first, so that srun cancels its job.
give_up() {
    [ -n "$child" ] && kill "$child" 2>/dev/null && sleep 1 && kill -9 "$child" 2>/dev/null
    exit 124
}

# Run a command in the background, because Slurm's commands may hang and a shell handles signals only during `wait`.
call() {
    "$@" </dev/null &
    child=$!
    wait "$child"
}

# start OPTION…: run the probe on nodes. Within an allocation, the probe is a step, which needs no queue and no time limit.
start() {
    if [ -n "${SLURM_JOB_ID-}" ]; then
        srun --help 2>/dev/null | grep -q -e --overlap && set -- --overlap "$@"
    else
        set -- --immediate="$wait_s" --time=2 --job-name=toolkit-probe ${partition:+"--partition=$partition"} "$@"
    fi
    # Unset the variables that Slurm sets for this step, because they differ from the variables of a job.
    # shellcheck disable=SC2016 # the node's shell expands the variables
    script | TOOLKIT_PLUGINS=$plugins TOOLKIT_NODE=yes srun -Q --label --mpi=none --export=ALL --ntasks-per-node=1 --chdir=/ "$@" \
        sh -c 'printf "@node %s\n" "$SLURMD_NODENAME"
            unset SLURM_MPI_TYPE OMPI_MCA_plm_slurm_args PRTE_MCA_plm_slurm_args HYDRA_BOOTSTRAP \
                HYDRA_LAUNCHER_EXTRA_ARGS I_MPI_HYDRA_BOOTSTRAP I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS
            exec sh -s' &
    child=$!
    wait "$child"
}

ask_nodes() {
    child=''
    trap give_up TERM
    call scontrol show config >"$folder/config" 2>/dev/null || {
        echo "srun: error: Slurm's controller does not answer" >&2
        return 1
    }
    plugins=$(sed -n 's/^PluginDir *= *//p' "$folder/config")
    case $nodes in
        1) start --nodes=1 --ntasks=1 ;;
        all | *[!0-9]*)
            names=$nodes
            if [ "$nodes" = all ]; then
                call sinfo -h -N -o '%N|%T|%P' >"$folder/known"
                sed 's/^/|/' "$folder/known"
                names=$(available "$folder/known" "$partition" mixed | paste -s -d , -)
            fi
            [ -n "$names" ] || { echo "srun: error: no node is idle" >&2; return 1; }
            start --nodelist="$names" || {
                failed=$?
                idle=$([ "$nodes" != all ] || available "$folder/known" "$partition" idle | paste -s -d , -)
                # A partly free node may have too few free resources. An idle node has enough resources.
                [ -n "$idle" ] && [ "$idle" != "$names" ] && start --nodelist="$idle" && failed=0
                return "$failed"
            }
            ;;
        *)
            call sinfo -h -N -o '%N|%T|%P' >"$folder/known"
            count=$(available "$folder/known" "$partition" mixed | awk 'END { print NR }')
            { [ "$count" -gt 0 ] && [ "$count" -lt "$nodes" ]; } || count=$nodes
            start --nodes="$count" --ntasks="$count"
            ;;
    esac
}

main() {
    nodes=$1 wait_s=$2 partition=${3-}
    folder=
    for base in "${TMPDIR:-/tmp}" /tmp "${HOME:-/}"; do
        folder=$base/toolkit-nodes.$$
        (umask 077 && mkdir "$folder") 2>/dev/null && break
        folder=
    done
    if [ -z "$folder" ] || ! command -v srun >/dev/null; then
        script | sh -s
        printf '\ntoolkit-nodes/1\n@srun 127\n'
        [ -n "$folder" ] || printf '!there is no folder for temporary files\n'
        printf '@nodesend\n'
        [ -z "$folder" ] || rm -rf "$folder"
        return
    fi
    asking='' watch=''
    trap '[ -z "$asking" ] || kill "$asking" 2>/dev/null; rm -rf "$folder"' EXIT
    trap 'exit 143' HUP INT TERM
    ask_nodes </dev/null >"$folder/said" 2>"$folder/errors" &
    asking=$!
    (
        sleep $((wait_s + 20)) &
        trap 'kill $!; exit' TERM
        wait
        kill "$asking"
    ) </dev/null >/dev/null 2>&1 &
    watch=$!
    script | sh -s
    wait "$asking" 2>/dev/null
    status=$?
    asking=
    kill "$watch" 2>/dev/null
    printf '\ntoolkit-nodes/1\n'
    cat "$folder/said"
    printf '\n@srun %d\n' "$status"
    # An error may contain the user's name and the controller's address. Remove both.
    person=$(id -un 2>/dev/null | sed 's/[][\\.*^$|]/\\&/g')
    sed -n -e "s|${person:-nobody}|-|g" -e 's/[0-9]\{1,3\}\.[0-9]\{1,3\}\.[0-9]\{1,3\}\.[0-9]\{1,3\}\(:[0-9]\{1,5\}\)*/ADDRESS/g' \
        -e 's/^srun: error: /!/p' "$folder/errors" | head -n 5
    printf '@nodesend\n'
}

main "$@"
