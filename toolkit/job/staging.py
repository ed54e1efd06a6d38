"""List the files that toolkit copies to the cluster for a job: a data set, and the user's own trainer."""

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
    """Return the folder of the data on the cluster, and the files to copy to this folder.

    Raises:
        BadInput: if there are too many files to copy one by one.
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
            f"--data {local}: more than {_MOST_FILES} files to copy to the cluster",
            fix="copy the files to the cluster yourself, and give the folder with `--data cluster:/PATH`",
        )
    parcels = [Parcel.of(f, posixpath.join(folder, *f.relative_to(local).parts)) for f in files]
    if shared := data_there(runner, request.site, name, folder, parcels):
        return shared, []
    return folder, parcels


def program_parcels(local: Path | None, base: str) -> tuple[Parcel, ...]:
    """Return the user's own trainer as a file to copy. The name of the target folder contains the file's
    digest.
    """
    if local is None:
        return ()
    digest = hash_file(local)
    return (Parcel(local, posixpath.join(base, "programs", digest[:12], local.name), digest),)
