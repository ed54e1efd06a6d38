"""Run independent copies of a program as ranks, each with a number and a separate folder."""

import msgspec

from toolkit.model.job import JobSpec

_NUMBER = "${SLURM_PROCID:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PALS_RANKID:-0}}}}"
_COPY = f"""export TOOLKIT_COPY="{_NUMBER}" TOOLKIT_START_DIR="$PWD"
export PYTHONPATH="$PWD${{PYTHONPATH:+:$PYTHONPATH}}"
program=$1
shift
case "$program" in /*) ;; */*) program=$PWD/$program ;; esac
for word do
    shift
    case "$word" in /*) ;; *) [ ! -f "$word" ] || word=$PWD/$word ;; esac
    set -- "$@" "$word"
done
mkdir -p -- "$TOOLKIT_JOB_DIR/copy-$TOOLKIT_COPY" && cd -- "$TOOLKIT_JOB_DIR/copy-$TOOLKIT_COPY" || exit 1
exec "$program" "$@"
"""
"""A shell program that sets the number of a copy, changes to the copy's folder and starts the command.

Relative paths are not valid in the copy's folder. Before the shell program changes to this folder, it makes
two kinds of paths absolute: the path of the command, and arguments that are paths of existing files.
"""


def in_own_folders(spec: JobSpec) -> JobSpec:
    """Return the job with a command that starts each rank in a separate folder.

    The variable ``TOOLKIT_COPY`` contains the number of the rank.
    """
    return msgspec.structs.replace(spec, command=("sh", "-c", _COPY, "copy", *spec.command))
