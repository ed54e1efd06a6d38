"""Run several copies of a program that does not join its ranks, each with a number and its own folder."""

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
"""A shell program that sets each copy's number and changes to its folder.

The program makes paths absolute, because the command may name files in the start folder.
"""


def in_own_folders(spec: JobSpec) -> JobSpec:
    """Return the job with copies as ranks; each copy has ``TOOLKIT_COPY`` and starts in its own folder."""
    return msgspec.structs.replace(spec, command=("sh", "-c", _COPY, "copy", *spec.command))
