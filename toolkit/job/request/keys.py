"""Find which signatures an image needs, from the options, the settings and the site profile."""

from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import BadInput
from toolkit.folders import at_home
from toolkit.model.site import Site

OPTION = "--verify-key"


@dataclass(frozen=True, slots=True)
class RequiredKey:
    """A file of public keys; the image needs a signature by one of these keys.

    ``key`` is the path of the file. ``origin`` is the source of the requirement: an option, a variable, a
    line of a settings file, or a site.
    """

    key: str
    origin: str


@dataclass(frozen=True, slots=True)
class KeyDemand:
    """The signatures that an image needs before a job may start it: a signature by a key from each file in
    ``required_keys``.

    If ``unchecked`` is true, toolkit does not check signatures.
    """

    required_keys: tuple[RequiredKey, ...] = ()
    unchecked: bool = False


def merge_demands(
    verify_key: str | None,
    no_verify: bool,
    settings: RequiredKey | None,
    site: Site | None,
    name: str | None,
) -> KeyDemand:
    """Return the signatures that the options, the settings and the site profile require.

    The options override the settings. If the profile sets ``image.override``, the options and settings also
    override the profile. If the profile does not set ``image.override``, the image needs a signature by a
    key of the options or settings, and a signature by a key of the profile.

    Args:
        verify_key: the value of ``--verify-key``.
        no_verify: whether the user gave ``--no-verify``.
        settings: the key file that ``toolkit.toml``, the user's settings file or the variable
            ``TOOLKIT_VERIFY_KEY`` requires, or ``None``.
        site: the profile of the job's site.
        name: the name of this site.

    Raises:
        BadInput: if the options conflict with each other or the profile, or a key file does not exist.
    """
    if no_verify and verify_key is not None:
        raise BadInput("--no-verify and --verify-key: cannot be combined; leave out one of them")
    own = RequiredKey(verify_key, OPTION) if verify_key is not None else None if no_verify else settings
    of_site = _of_site(site, name)
    if of_site and site and site.image.override and (own or no_verify):
        of_site = None
    if of_site and no_verify:
        raise BadInput(
            f"--no-verify: {of_site.origin} requires a signature by a key in {of_site.key}",
            fix="leave out `--no-verify`; only the site profile can permit `--no-verify` (image.override)",
        )
    required = tuple(dict.fromkeys(key for key in (own, of_site) if key))
    for key in required:
        _check_file(key)
    return KeyDemand(required, no_verify)


def _of_site(site: Site | None, name: str | None) -> RequiredKey | None:
    if site is None or not site.image.verify_key:
        return None
    return RequiredKey(site.image.verify_key, f"site {name}: image.verify_key")


def _check_file(required_key: RequiredKey) -> None:
    if not required_key.key:
        raise BadInput(
            f"{required_key.origin}: the value is empty",
            fix=f"give a file of public keys, or remove `{required_key.origin}`; if the value comes from a "
            "shell variable, such as `$KEYS`, set that variable",
        )
    from toolkit.run.gpg import check_keyring  # slow import, not needed for --help

    check_keyring(at_home(required_key.key), required_key.origin)


def beside(file: Path, key: str) -> str:
    """Return the path of the key file ``key``, which the settings file or profile ``file`` names.

    A relative path is relative to the folder of ``file``. If ``key`` is empty, the result is empty.
    """
    return str(file.absolute().parent / at_home(key)) if key else key
