"""Check the signature, the key and the digest of an image before a container starts.

toolkit creates each job record from an :class:`ImageClearance`. Only this module creates
:class:`ImageClearance` objects, so no image can start without passing through this module.
"""

import posixpath
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.errors import BadInput, CheckFailed, Missing
from toolkit.files import hash_file
from toolkit.folders import at_home
from toolkit.image.files.filelock import identity
from toolkit.image.inspect import inspect
from toolkit.image.trust.judgement import before_launch
from toolkit.job.rank_view import TRAINER, view_of_command
from toolkit.job.request.inputs import StartableImage, find_startable
from toolkit.job.request.keys import OPTION, KeyDemand, RequiredKey, merge_demands
from toolkit.job.request.layering import JobRequest, required_by_settings
from toolkit.job.request.locations import find_image
from toolkit.knowledge import sites
from toolkit.launch.tracking.relaunch import check_image
from toolkit.model.facts import ImageFacts
from toolkit.model.job import ImageCheck, JobRecord
from toolkit.model.progress import Tell
from toolkit.model.rank import RankView
from toolkit.run.command import Runner


@dataclass(frozen=True, slots=True)
class ImageClearance:
    """An image that toolkit may start: its digest (``sha256:…``) and the result of its signature check."""

    digest: str
    check: ImageCheck

    @property
    def note(self) -> str:
        """The result of the signature check, as a comment for the job script."""
        return f"image {self.digest}, signature: {', '.join((self.check.signature, *self.check.signers))}"


def demand_of(request: JobRequest, verify_key: str | None, no_verify: bool) -> KeyDemand:
    """Return which signatures the options, the settings and the site profile require for a new job's image.

    Args:
        request: the job, with its site profile and the key file that the settings require.
        verify_key: the value of ``--verify-key``.
        no_verify: whether the user gave ``--no-verify``.

    Raises:
        BadInput: if the options conflict with each other or the profile, or a key file does not exist.
    """
    return merge_demands(verify_key, no_verify, request.key, request.site, request.job.site)


def demand_for(site: str | None, verify_key: str | None, no_verify: bool) -> KeyDemand:
    """Return which signatures a recorded job's image needs before toolkit submits the job again.

    toolkit uses the current options, settings and site profile, and not the values from the recorded launch.

    Args:
        site: the name of the site profile; empty or ``None`` without a site.
        verify_key: the value of ``--verify-key``.
        no_verify: whether the user gave ``--no-verify``.
    """
    profile = sites.site(site) if site else None
    return merge_demands(verify_key, no_verify, required_by_settings(), profile, site)


def clear(image: StartableImage, demand: KeyDemand, tell: Tell) -> ImageClearance:
    """Check the signatures of an image before it starts, and return an object that permits the start.

    If ``demand`` requires no key, an unsigned image may start.

    Raises:
        CheckFailed: if a signature is wrong, a required signature is missing or unreadable, or the image file
            has changed since toolkit read it.
        Missing: if the check needs gpg and gpg cannot run.
    """
    check = _check_image(image, demand, tell)
    if (
        image.local_file is not None
        and image.file_identity
        and identity(image.local_file) != image.file_identity
    ):
        raise CheckFailed(
            f"{image.local_file}: the file changed while toolkit read it",
            fix="launch again when no program writes to the file",
        )
    return ImageClearance(f"sha256:{image.digest}", check)


def clear_again(
    runner: Runner, record: JobRecord, demand: KeyDemand, tell: Tell, *, remote: bool
) -> tuple[ImageClearance, ImageFacts | None]:
    """Check a recorded job's image again. Return an object that permits the start, and the image's facts.

    The facts are ``None`` if neither the image nor an identical copy is on this machine.

    toolkit first compares the digest of the image on the job's host with the digest in the record. For a job
    on another machine, toolkit then checks the signatures of an identical copy on this machine. If this
    machine has no copy, and ``demand`` requires no key, toolkit uses the recorded result of the last
    signature check.

    Args:
        remote: whether the job's host is another machine.

    Raises:
        CheckFailed: if the image has changed, or for the reasons of :func:`clear`.
        Missing: if the image no longer exists on the host, or the check needs gpg and gpg cannot run.
    """
    check_image(runner, record)
    local_file = _copy_here(record) if remote else Path(record.spec.image)
    name, digest = posixpath.basename(record.spec.image), record.image_digest.removeprefix("sha256:")
    if local_file is not None:
        file_identity, facts = (
            identity(local_file),
            inspect(local_file, tell=tell, view=_view(record, remote=remote)),
        )
        return clear(
            find_startable(StartableImage(name, facts, digest, local_file, record.spec.image, file_identity)),
            demand,
            tell,
        ), facts
    if demand.required_keys or demand.unchecked or record.image_check is None:
        facts = ImageFacts(path=record.spec.image, format="sif")
        return clear(StartableImage(name, facts, digest, None, record.spec.image), demand, tell), None
    tell.step(
        f"{name} is unchanged since its signature check for job {record.key}; "
        f"the result of this check was: {record.image_check.signature}"
    )
    return ImageClearance(record.image_digest, record.image_check), None


def _view(record: JobRecord, *, remote: bool) -> RankView:
    view = view_of_command(TRAINER if record.spec.trainer else record.spec.command, record.spec.binds)
    # If the job's host is another machine, the environment image is there, so toolkit cannot read it here.
    return view if remote else msgspec.structs.replace(view, env=record.spec.env_image)


def _check_image(image: StartableImage, demand: KeyDemand, tell: Tell) -> ImageCheck:
    if demand.unchecked:
        tell.step(f"The signatures of {image.name} are not checked, because of --no-verify")
        return ImageCheck(signature="not-checked")
    if image.local_file is None:
        for required_key in demand.required_keys[:1]:
            raise CheckFailed(
                f"{required_key.origin}: {image.cluster_path} is not on this machine, so its signatures "
                "cannot be checked",
                fix="launch on the login node, or copy the image to this machine and name it with `--image`",
            )
        return ImageCheck(signature="not-checked")
    form = image.facts.format
    if form != "sif":
        for required_key in demand.required_keys[:1]:
            raise CheckFailed(
                f"--image {image.local_file}: a {form} has no signature{_why(required_key)}",
                fix="give a signed SIF file",
            )
        return ImageCheck(signature="none")
    check = _signatures(image.local_file, demand)
    _tell_signature(image.name, check, tell)
    return check


def _signatures(sif: Path, demand: KeyDemand) -> ImageCheck:
    if not demand.required_keys:
        return before_launch(sif, None)
    signers: set[str] = set()
    for required_key in demand.required_keys:
        try:
            signers |= {*before_launch(sif, at_home(required_key.key)).signers}
        except CheckFailed as error:
            raise CheckFailed(
                f"{error.message}{_why(required_key)}", fix=error.fix, detail=error.detail
            ) from error
    return ImageCheck(signature="good", signers=tuple(sorted(signers)))


def _why(required_key: RequiredKey) -> str:
    """Return the end of an error message. It names the site profile or the settings that require a key.

    The result is empty if the option ``--verify-key`` requires the key.
    """
    return (
        ""
        if required_key.origin == OPTION
        else f" ({required_key.origin} requires a signature by a key in {required_key.key})"
    )


def _tell_signature(name: str, check: ImageCheck, tell: Tell) -> None:
    keys = ", ".join(check.signers)
    match check.signature:
        case "good":
            tell.step(f"{name} is signed by {keys}")
        case "unknown-key":
            tell.step(f"{name} is undamaged; the signer is unknown, because gpg does not have the key {keys}")
        case "no-gpg":
            tell.step(f"The signature of {name} is not checked, because this machine has no gpg")
        case _:
            pass


def _copy_here(record: JobRecord) -> Path | None:
    """Return the path of an identical copy of a recorded image on this machine, or ``None``."""
    digest = record.image_digest.removeprefix("sha256:")
    stem = posixpath.basename(record.spec.image).removesuffix(".sif").removesuffix(f"-{digest[:12]}")
    try:
        local_file = find_image(stem)
    except (BadInput, Missing):
        return None
    return local_file if hash_file(local_file) == digest else None
