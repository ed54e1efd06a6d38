"""Translate options of torchrun, accelerate and deepspeed into names and values, such as ``PET_MASTER_PORT``
and ``29500`` for torchrun's ``--master-port 29500``.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from toolkit.program.torch import OPTIONS

_SIZES = {
    "accelerate": {
        "--cpu": "accelerate_cpu",
        "--num-processes": "accelerate_processes",
        "--num-machines": "accelerate_machines",
    },
    "deepspeed": {"--num-gpus": "deepspeed_gpus", "--num-nodes": "deepspeed_nodes"},
}
"""For each starter, the options that change the number of ranks, and the names under which toolkit records
the values of these options.

Sources: huggingface/accelerate:src/accelerate/commands/launch.py;
deepspeedai/DeepSpeed:deepspeed/launcher/runner.py.
"""
_FLAGS = {"accelerate_cpu"}


def variables_of_options(starter: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a variable and its value for each torchrun option in a command, up to the name of the script. The
    function skips torchrun options whose value the shell computes.

    For accelerate and deepspeed, yield a name and a value for each option that changes the number of ranks.
    """
    if starter in _SIZES:
        yield from _sizes(_SIZES[starter], words)
    if starter != "torchrun":
        return
    given = iter(words)
    for word in given:
        if not word.startswith("-"):
            return
        option, separator, value = word.lstrip("-").partition("=")
        known = OPTIONS.get(option.replace("_", "-"))
        if known is None:
            continue
        if known.flag:
            yield known.variable, "1"
            continue
        value = value if separator else next(given, "")
        if "$" not in value and "`" not in value:
            yield known.variable, value


def _sizes(names: Mapping[str, str], words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """For each option in ``names`` that precedes the script in a command, yield the option's name from
    ``names`` and the option's value. The value can be a separate word, as in ``--num-gpus 4``.
    """
    options = list(takewhile(lambda word: not word.endswith(".py") and word != "-m", words))
    for number, word in enumerate(options):
        option, separator, value = word.partition("=")
        name = names.get(option.replace("_", "-"))
        if name in _FLAGS:
            yield name, "1"
        elif name:
            following = options[number + 1] if number + 1 < len(options) else ""
            yield name, value if separator else following
