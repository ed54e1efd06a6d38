# Where Slurm is not on PATH, add what a login shell has there: a command over SSH gets none, and at some centres
# nothing else finds Slurm. Stands before what is asked at a place, as text of the same `sh -s`. TOOLKIT_PROGRAM names
# another program that has to be found.
# shellcheck shell=sh
command -v "${TOOLKIT_PROGRAM-srun}" >/dev/null || {
    case ${SHELL-} in */bash | */dash | */ksh | */zsh) ;; *) SHELL="sh" ;; esac
    # Profiles may print, read, or never end.
    added=$(
        command -v timeout >/dev/null && set -- timeout 5
        # shellcheck disable=SC2016 # the login shell reads it
        "$@" "$SHELL" -lc 'printf "\ntoolkit-path:%s\n" "$PATH"' </dev/null 2>/dev/null | sed -n 's/^toolkit-path://p'
    )
    PATH=$PATH${added:+:$added}
    export PATH
}
