"""Test that toolkit names a failed download as the cause if a program then lacks a file."""

from tests.unit.engine.logs.test_root import told
from tests.unit.tables import every_row

REQUEST = (
    "'[Errno 101] Network is unreachable' thrown while requesting HEAD https://huggingface.co/a/config.json"
)
PIP = (
    "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by 'NewConnectionError('"
    "Failed to establish a new connection: [Errno -2] Name or service not known')': /simple/einops/"
)
LACKS = "OSError: Can't load tokenizer for 'a'."
RETRY = "Retrying in 1s [Retry 1/5]."


@every_row(
    "lines",
    [
        [REQUEST, RETRY, LACKS],
        [
            REQUEST,
            RETRY,
            REQUEST.replace("HEAD", "GET"),
            RETRY,
            "ValueError: Couldn't find a data set in a cache",
        ],
        [
            PIP,
            PIP.replace("total=4", "total=3"),
            "ERROR: Could not find a version that satisfies the requirement einops (from versions: none)",
        ],
    ],
)
def test_the_first_failed_request_is_the_root_line(lines):
    assert told("\n".join(lines) + "\n")[:2] == (lines[0], "network-or-dns")


def test_a_failed_request_of_another_rank_is_not_the_root_line():
    assert told(f"[rank1]: {REQUEST}\n[rank0]: {LACKS}\n")[0] == f"[rank0]: {LACKS}"


@every_row("error", ["KeyError: 'lr'", "RuntimeError: shape '[2]' is invalid for input of size 3"])
def test_a_failed_request_is_not_the_root_line_of_another_error(error):
    assert told(f"{REQUEST}\n{RETRY}\n{error}\n")[0] == error
