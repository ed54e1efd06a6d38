"""Ask a running container about its MPI, C library, Python and PMIx, and parse the answers."""

import re
from typing import Any

QUESTIONS = r"""
echo "@ libraries"; ldd /opt/probe 2>&1
echo "@ library"
# A wheel may give its library a name of its own: libmpi-3f8c9a12.so.12.
loads='^[[:space:]]*(lib(mpi|mpich)(-[0-9a-f]+)?\.so[^ ]*) => ([^ ]+) .*'
library=$(ldd /opt/probe | sed -nE "s/$loads/\4/p" | head -n 1)
readlink -f "$library"
echo "@ soname"; ldd /opt/probe | sed -nE "s/$loads/\1/p" | head -n 1
echo "@ glibc"; ldd --version 2>&1 | head -n 1
echo "@ python"; python3 --version 2>/dev/null
prefix=$(dirname "$(dirname "$library")")
alone() { OMPI_MCA_btl=self OMPI_MCA_plm=isolated timeout 60 "$@" /opt/probe 2>/dev/null | head -n 1; }
echo "@ probe"
# Intel's library may need the libfabric that lies beside it.
own=$prefix/lib/libfabric
alone env FI_PROVIDER=tcp | grep . || alone env LD_LIBRARY_PATH="$own" FI_PROVIDER_PATH="$own/prov"
for bin in "$prefix/bin" /usr/bin; do
    [ -x "$bin/ompi_info" ] && { echo "@ ompi_info"; "$bin/ompi_info" --parsable 2>/dev/null | \
        grep -E '^(ompi:version:full|mca:(pmix|pml|btl|mtl):[^:]*:version|option:)|^mca:pmix' ; break; }
done
for bin in "$prefix/bin" /usr/bin; do
    [ -x "$bin/mpichversion" ] && {
        echo "@ mpichversion"; "$bin/mpichversion" 2>/dev/null | head -n 12; break; }
done
[ -x "$prefix/bin/mpirun" ] && { echo "@ launcher"; "$prefix/bin/mpirun" --version 2>/dev/null | head -n 3; }
echo "@ pmix"
{
    ldd /opt/probe
    case $library in
        *libmpi.so.[2-9][0-9])
            find "$(dirname "$(readlink -f "$library")")" -name 'mca_pmix_*.so' -exec ldd {} \; ;;
    esac
} 2>/dev/null | sed -nE 's/.*libpmix\.so\.2 => ([^ ]+) .*/\1/p' | head -n 1 | while read -r pmix; do
    # A program that came with the library tells, else its package, else what PMIx_Get_version would return.
    for bin in "$prefix/bin" /usr/bin; do
        "$bin/pmix_info" --parsable 2>/dev/null | sed -n 's/^pmix:version:full://p'
    done | grep -m 1 . || dpkg-query -W -f '${Version}\n' 'libpmix2*' 2>/dev/null | grep . || \
        grep -m 1 -aoE 'OpenPMIx [0-9.]+' "$pmix"
done
echo "@ environment"; env | grep -E '^(PATH|LD_LIBRARY_PATH|OMPI_|UCX_|FI_|I_MPI_|PMIX_)' | sort
echo "@ end"
"""
"""A POSIX shell script that prints the line `@ name` before each answer."""


def heard(text: str) -> dict[str, Any]:
    """Return the answers by question: a string for an answer of one line, else a list of lines."""
    answers: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("@ "):
            name = line[2:]
            answers[name] = []
        elif name and line.strip():
            answers[name].append(re.sub(r" \(0x[0-9a-f]+\)", "", line.strip()))
    answers.pop("end", None)
    return {key: lines if len(lines) != 1 else lines[0] for key, lines in answers.items()}
