"""PyTorch: ranks connect to a port of the first rank's node (``torch.distributed``, ``env://``).

Sources: PyTorch's documentation of torch.distributed ("Environment variable initialization"); torchrun, which
also reads its options from ``PET_*`` variables (pytorch/pytorch:torch/distributed/argparse_util.py);
huggingface/accelerate:src/accelerate/commands/launch.py; deepspeedai/DeepSpeed:deepspeed/launcher/runner.py.
"""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.model.facts import ImageFacts
from toolkit.model.prediction import Mode, ProgramName, Starter

NAME: ProgramName = "torch"
TITLE = "PyTorch"
JOINS = frozenset({"torch", "torchrun", "accelerate", "deepspeed", "lightning"})
MODES: tuple[Mode, ...] = ("torch",)
BY_MPI = False


@dataclass(frozen=True, slots=True)
class StarterOption:
    """An option of torchrun. If the command does not contain the option, torchrun reads the environment
    variable ``variable`` instead. ``flag`` is true for an option without a value.
    """

    variable: str
    flag: bool = False


_VALUES = (
    *("nnodes", "nproc-per-node", "node-rank", "master-addr", "master-port", "local-addr"),
    *("rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "max-restarts", "monitor-interval"),
    *("start-method", "event-log-handler", "log-dir", "redirects", "tee", "local-ranks-filter", "role"),
)
OPTIONS = {name: StarterOption(f"PET_{name.replace('-', '_').upper()}") for name in _VALUES} | {
    "standalone": StarterOption("PET_STANDALONE", flag=True)
}
"""torchrun's options with a value, and ``--standalone``. The option ``--standalone`` has no value; with this
option, torchrun itself chooses the values of the rendezvous options.

Source: pytorch/pytorch:torch/distributed/run.py, get_args_parser; argparse_util.py, env.
"""

_STRATEGIES = (
    "--multi[-_]gpu | --cpu | --tpu | --use[-_]deepspeed | --use[-_]fsdp | --use[-_]megatron[-_]lm "
    "| --config[-_]file | --config[-_]file=*"
)
"""A pattern for the shell's ``case``. The pattern matches the options that let ``accelerate launch`` start
several processes. Without one of these options, and with fewer than two GPUs on a node, ``accelerate launch``
starts a single process.
"""

_MODULES: dict[str, Starter] = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
}


def in_image(image: ImageFacts) -> bool:
    """Return whether the image has PyTorch."""
    return image.pytorch is not None


def starter(command: Sequence[str]) -> Starter:
    """Return the starter with which a command begins: ``torchrun``, ``accelerate``, ``deepspeed``
    or ``""``.
    """
    words = [posixpath.basename(word) for word in command[:1]] + list(command[1:])
    if words[:1] == ["torchrun"]:
        return "torchrun"
    if words[:2] == ["accelerate", "launch"] or words[:1] == ["accelerate-launch"]:
        return "accelerate"
    if words[:1] == ["deepspeed"]:
        return "deepspeed"
    if words and words[0].startswith("python") and "-m" in words[1:4]:
        module = words[words.index("-m") + 1 :][:1]
        return _MODULES.get(module[0], "") if module else ""
    return ""


def peers(starter: Starter) -> tuple[str, ...]:
    """Return shell lines that set the rendezvous (where the ranks find each other).

    Without a starter, the lines set variables for each rank. With a starter such as torchrun, they set the
    variables and options of the starter.
    """
    meeting = 'export MASTER_ADDR="$first" MASTER_PORT="$port"'
    if starter == "torchrun":
        return (
            "# Values of torchrun's options that the command does not give.",
            'export PET_NNODES="$node_count" PET_NPROC_PER_NODE="$local_ranks" PET_NODE_RANK="$node_rank"',
            'export PET_MASTER_ADDR="$first" PET_MASTER_PORT="$port" PET_RDZV_ID="$job"',
            'export PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT="$first:$port"',
            'if [ "$node_rank" = 0 ]; then PET_RDZV_CONF=is_host=1; else PET_RDZV_CONF=is_host=0; fi',
            "export PET_RDZV_CONF",
        )
    if starter == "accelerate":
        return (
            meeting,
            "# toolkit puts its options first, so an option in your command overrides them.",
            *_left_out("accelerate", "accelerate.commands.launch"),
            'if [ "$1" = launch ]; then shift; fi',
            "strategy=--multi_gpu",
            "for word do",
            '    case "$word" in',
            f"    {_STRATEGIES}) strategy= ;;",
            "    *.py | -m | --module) break ;;",
            "    esac",
            "done",
            'if [ "$ranks" -gt 1 ] && [ -n "$strategy" ]; then set -- "$strategy" "$@"; fi',
            'set -- --main_process_ip "$first" --main_process_port "$port" --num_processes "$ranks" "$@"',
            'set -- accelerate launch --num_machines "$node_count" --machine_rank "$node_rank" "$@"',
        )
    if starter == "deepspeed":
        return (
            meeting,
            "# toolkit puts its options first, so an option in your command overrides them.",
            *_left_out("deepspeed", "deepspeed.launcher.runner"),
            'set -- --node_rank "$node_rank" --master_addr "$first" --master_port "$port" "$@"',
            'set -- deepspeed --hostfile "${0%/*}/hostfile" --no_ssh "$@"',
        )
    return (
        meeting,
        'export RANK="$rank" LOCAL_RANK="$local_rank" NODE_RANK="$node_rank"',
        'export WORLD_SIZE="$ranks" LOCAL_WORLD_SIZE="$local_ranks"',
    )


def _left_out(program: str, module: str) -> tuple[str, ...]:
    """Return shell lines that remove the starter's words from the start of ``"$@"``. These words are the name
    ``program``, or ``python -m`` and the name ``module``.
    """
    return (
        f'case "$1" in *{program} | *{program}-launch) shift ;;',
        f'*) while [ "$1" != {module} ]; do shift; done; shift ;; esac',
    )
