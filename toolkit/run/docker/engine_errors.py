"""Translate errors of the Docker SDK and its libraries into toolkit's errors."""

import contextlib
from collections.abc import Iterator

from toolkit.errors import CheckFailed, Missing


@contextlib.contextmanager
def translate_errors(action: str) -> Iterator[None]:
    """Translate exceptions of the Docker SDK in the ``with`` block into toolkit's exceptions.

    ``action`` completes the error message "... while toolkit was", for example ``tagging X``.
    """
    try:
        yield
    except Exception as error:
        if not is_engine_error(error):
            raise
        raise _as_ours(error, action) from error


def is_engine_error(error: BaseException) -> bool:
    """Return whether the Docker SDK, or its HTTP or SSH library, raised the error."""
    top = type(error).__module__.partition(".")[0]
    return top in {"docker", "requests", "urllib3", "paramiko"} or isinstance(
        error, ConnectionError | TimeoutError
    )


def no_engine(error: Exception, address: str) -> Missing:
    """Return the exception to raise if the Docker engine at ``address`` does not answer."""
    text = str(error)
    if "PermissionError" in text or "Permission denied" in text:
        return Missing(
            f"this user has no access to the Docker engine on {address}",
            fix="join the group docker (`sudo usermod -aG docker $USER`), and log in again",
        )
    if isinstance(error, FileNotFoundError) or "FileNotFoundError" in text or "Connection refused" in text:
        return Missing(
            f"no Docker engine answers on {address}",
            fix="start the engine: `sudo systemctl start docker`; on Debian or Ubuntu, install it with"
            " `sudo apt-get install docker.io`",
        )
    return Missing(
        f"no Docker engine answers on {address}: {text.splitlines()[0] if text else type(error).__name__}",
        fix="check `DOCKER_HOST`, `docker context ls`, and the engine's log",
    )


def _as_ours(error: Exception, action: str) -> CheckFailed | Missing:
    import docker

    explanation = getattr(error, "explanation", None)
    if isinstance(error, docker.errors.APIError) and explanation:
        return CheckFailed(f"the Docker engine reported an error while toolkit was {action}: {explanation}")
    if "Read timed out" in str(error):
        return CheckFailed(
            f"the Docker engine did not answer in time while toolkit was {action}",
            fix="run the same command again with `--verbose`, which shows the output of every step",
        )
    return Missing(
        f"the Docker engine stopped answering while toolkit was {action}",
        fix="start the engine (`sudo systemctl start docker`), then run the same command again",
    )
