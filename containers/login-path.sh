# If Slurm is not on PATH, add the PATH of a login shell. A command over SSH does not run in a login shell, and some
# centres put Slurm on PATH only in login shells. toolkit puts this text before the commands for an `sh -s`.
# TOOLKIT_PROGRAM names a program other than srun to find.
# shellcheck shell=sh
command -v "${TOOLKIT_PROGRAM-srun}" >/dev/null || {
    case ${SHELL-} in */bash | */dash | */ksh | */zsh) ;; *) SHELL="sh" ;; esac
    # A login shell's profile may print text, read input or hang.
    added=$(
        command -v timeout >/dev/null && set -- timeout 5
        # shellcheck disable=SC2016 # the login shell expands $PATH
        "$@" "$SHELL" -lc 'printf "\ntoolkit-path:%s\n" "$PATH"' </dev/null 2>/dev/null | sed -n 's/^toolkit-path://p'
    )
    PATH=$PATH${added:+:$added}
    export PATH
}
