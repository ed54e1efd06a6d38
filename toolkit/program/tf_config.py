"""TensorFlow's distribution strategies: each rank finds the addresses of all ranks in ``TF_CONFIG``.

Source: TensorFlow's guide "Multi-worker training with Keras", section TF_CONFIG.
"""

from collections.abc import Sequence

from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Mode, ProgramName, Starter

NAME: ProgramName = "tf-config"
TITLE = "TensorFlow"
JOINS = frozenset({"tf-config", "keras-distribution"})
MODES: tuple[Mode, ...] = ("tf-config",)
BY_MPI = False


def in_image(image: ImageFacts) -> bool:
    """Return whether the image has TensorFlow."""
    return image.tensorflow is not None


def starter(command: Sequence[str]) -> Starter:  # noqa: ARG001 - the Program protocol has this argument
    """Return an empty string: the launcher starts the ranks, without a starter such as torchrun."""
    return ""


def peers(starter: Starter) -> tuple[str, ...]:  # noqa: ARG001
    """Return shell lines that set ``TF_CONFIG``, with a separate port for each rank of a node."""
    return (
        "workers=",
        "for node in $nodes; do",
        "    local=0",
        '    while [ "$local" -lt "$local_ranks" ]; do',
        '        workers="$workers${workers:+, }\\"$node:$((port + local))\\"" local=$((local + 1))',
        "    done",
        "done",
        'task="{\\"type\\": \\"worker\\", \\"index\\": $rank}"',
        'TF_CONFIG="{\\"cluster\\": {\\"worker\\": [$workers]}, \\"task\\": $task}"',
        "export TF_CONFIG",
    )
