"""Push an image to a registry: upload the blobs that the registry lacks, then the manifest with the tag."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache

import msgspec

from toolkit.errors import BadInput
from toolkit.image.transfer.upload import ImageUpload, open_upload
from toolkit.model.progress import Tell
from toolkit.run.registry.images import has_blob, has_manifest, put_manifest
from toolkit.run.registry.name import RegistryName
from toolkit.run.registry.session import RegistryAccess, RegistrySession, open_session
from toolkit.run.registry.upload import Blob, send_blob
from toolkit.units import format_size


class Pushed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a push.

    ``parts`` is the number of blobs in the image. ``sent`` is the number of blobs that toolkit uploaded, and
    ``bytes`` is the total size of the uploaded blobs. ``form`` is the format of the pushed image, such as
    ``sif``.
    """

    schema: str = "toolkit.pushed/1"
    image: str
    target: str
    digest: str
    form: str
    parts: int
    sent: int
    bytes: int


def push(
    image: str, target: RegistryName, access: RegistryAccess, tell: Tell, *, platform: str = ""
) -> Pushed:
    """Upload an image to ``target``.

    ``platform``, such as ``linux/arm64``, selects one image of a multi-platform index.

    Raises:
        BadInput: if the image does not exist, or ``target`` contains a digest.
        Missing: if the registry is unreachable or refuses access; the next call resumes the upload.
        CheckFailed: if the image is damaged, or the registry rejects the image.
    """
    if target.digest:
        raise BadInput(f"{target}: give a tag, not a digest; toolkit computes the digest from the image")
    with ExitStack() as stack:

        @cache
        def session() -> RegistrySession:
            """Open the session on first use, so that toolkit rejects an invalid image before it contacts the
            registry.
            """
            tell.step(f"Contacting the registry {target.host}")
            return stack.enter_context(open_session(target, access))

        with open_upload(image, platform, lambda digest: has_blob(session(), target, digest), tell) as cargo:
            if has_manifest(session(), target, cargo.digest):
                tell.step(f"{target} already has this image")
                return _push_result(image, target, cargo, ())
            sent = _send(session(), target, cargo, tell)
            put_manifest(session(), target, cargo.manifest, cargo.media_type)
            return _push_result(image, target, cargo, sent)


def _send(
    session: RegistrySession, target: RegistryName, upload: ImageUpload, tell: Tell
) -> tuple[Blob, ...]:
    """Upload the blobs that the registry lacks, and return the uploaded blobs.

    A thread uploads the blobs, so that an interrupt stops the upload only between two chunks. If an upload
    stops inside a chunk, old registries discard the earlier chunks.
    """
    total = sum(blob.size for blob in upload.blobs)
    tell.step(f"Sending the image in {len(upload.blobs)} parts ({format_size(total)}) to {target}")
    stopped = threading.Event()

    def work() -> tuple[Blob, ...]:
        before, sent = 0, []
        for blob in upload.blobs:

            def on_sent(size: int, base_size: int = before) -> None:
                if stopped.is_set():
                    raise KeyboardInterrupt
                tell.detail(f"{(base_size + size) / max(total, 1):.0%}")

            if send_blob(session, target, blob, on_sent):
                sent.append(blob)
            before += blob.size
        return tuple(sent)

    with ThreadPoolExecutor(1) as pool:
        try:
            return pool.submit(work).result()
        finally:
            stopped.set()


def _push_result(image: str, target: RegistryName, upload: ImageUpload, blobs: tuple[Blob, ...]) -> Pushed:
    return Pushed(
        image=image,
        target=str(target),
        digest=upload.digest,
        form=upload.form,
        parts=len(upload.blobs),
        sent=len(blobs),
        bytes=sum(blob.size for blob in blobs),
    )
