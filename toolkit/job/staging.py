"""List the files of a job that toolkit copies to the cluster: data, and a trainer that the user wrote."""

import itertools
import posixpath
from pathlib import Path

from toolkit.errors import BadInput
from toolkit.files import hash_file
from toolkit.job.request.inputs import OnCluster, data_there, folder_there
from toolkit.job.request.layering import JobRequest
from toolkit.launch.request import trainers
from toolkit.run.command import Runner
from toolkit.run.stage import Parcel

_MOST_FILES = 10_000
"""The largest number of data files that toolkit copies. The limit exists because toolkit computes the hash of
each data file on this machine and on the cluster.
"""


def data_parcels(
    runner: Runner, request: JobRequest, local: Path | OnCluster | None, base: str, *, remote: bool
) -> tuple[str, list[Parcel]]:
    """Return the folder of the data on the machine of the job, and the files to copy to this folder.

    ``local`` is the folder that ``--data`` names, or the folder of a downloaded data set. ``base`` is
    toolkit's folder on the cluster. ``remote`` is false if the job runs on this machine. There are no files
    to copy if the job runs on this machine, or the cluster already has the data. If ``local`` is ``None``,
    the returned folder is ``""``.

    Raises:
        BadInput: if the folder has more than 10,000 files to copy.
    """
    if local is None:
        return "", []
    if isinstance(local, OnCluster):
        return folder_there(runner, local), []
    if not remote:
        return str(local), []
    known = trainers.find(request.job.trainer) if request.job.trainer else None
    name = (known.dataset if known else "") or local.name
    folder = posixpath.join(base, "data", name)
    paths = (path for path in local.rglob("[!.]*") if path.is_file())
    files = sorted(itertools.islice(paths, _MOST_FILES + 1))
    if len(files) > _MOST_FILES:
        raise BadInput(
            f"--data {local}: the folder has more than {_MOST_FILES} files, toolkit's limit for a copy",
            fix="copy the folder to the cluster yourself, and give its path there: `--data cluster:/PATH`",
        )
    parcels = [Parcel.of(f, posixpath.join(folder, *f.relative_to(local).parts)) for f in files]
    if shared := data_there(runner, request.site, name, folder, parcels):
        return shared, []
    return folder, parcels


def program_parcels(local: Path | None, base: str) -> tuple[Parcel, ...]:
    """Return the user's trainer ``local`` as a file to copy to the cluster; empty if ``local`` is ``None``.

    toolkit copies the file to a folder whose name is the start of the file's SHA-256 digest.
    """
    if local is None:
        return ()
    digest = hash_file(local)
    return (Parcel(local, posixpath.join(base, "programs", digest[:12], local.name), digest),)
