"""The command-line options that all trainers share, and the exit status of a trainer."""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from toolkit.trainers.checks.node import DEVICES, openable
from toolkit.trainers.frameworks import framework_of
from toolkit.trainers.learning import options as learning_options
from toolkit.trainers.learning.refusals import find_framework_refusal, find_refusal
from toolkit.trainers.ranks.output import wait_for_reader
from toolkit.trainers.ranks.spread import RankSpread
from toolkit.trainers.ranks.tuning import UNTUNED, Tuning
from toolkit.trainers.ranks.world import World, complain_once, open_world
from toolkit.trainers.start_marks import mark
from toolkit.trainers.strategies import STRATEGIES
from toolkit.trainers.strategies.horovod import is_lost_rank
from toolkit.trainers.trainer import Options, Trainer
from toolkit.trainers.training.train import train
from toolkit.trainers.trouble import STOPPED, Stopped, Trouble
from toolkit.trainers.words import count, count_or_auto, positive, seed

_TIME_TO_SPEAK = 1.0
"""The number of seconds for which all ranks except rank 0 delay their error messages, so that rank 0 reports
a fault first.
"""


def run(trainer: Trainer, words: list[str] | None = None) -> NoReturn:
    """Train with the options in ``words`` (default: the command line), and exit. If this rank fails, abort
    all ranks.

    Exit status: 0 after a complete training; 1 after a failure; 2 for a wrong option or wrong data; 3 for a
    missing package; 75 if the training stopped on request and wrote a checkpoint. After exit status 75, run
    the same command again to resume the training.
    """
    trainer, options = parse(trainer, words)
    # Hide TensorFlow's start-up messages, which do not help users.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2" if options.learning.xla == "off" else "3")
    world: World | None = None
    try:
        _refuse(trainer, options)
        usual = UNTUNED if openable(DEVICES) else trainer.tuning
        trouble = options.tuning.apply(options.strategy, os.environ, usual) or _look(trainer, options)
        world = open_world(options.strategy, options.spread)
        threads = _prepare_devices(world, trouble)
        world.begin()
        if world.size == 1:
            mark("imports")
        mark("rendezvous")
        (trainer.run or train)(trainer, options, world, threads)
        _leave(world, 0)
    except Trouble as error:
        # If this rank cannot load Horovod, it cannot abort the ranks that wait for this rank.
        # Its exit status makes mpirun, or srun with --kill-on-bad-exit, abort the job.
        print(f"{trainer.name}: {error.message}", file=sys.stderr)
        _end(world, error.code)
    except Stopped as wish:
        if world is None or world.rank == 0:
            print(f"{trainer.name}: {wish}", flush=True)
        _leave(world, STOPPED)
    except KeyboardInterrupt:
        _end(world, 130)
    except Exception as error:  # noqa: BLE001 - any error must stop all ranks
        if world:
            world.failing(error)
        # All ranks except rank 0 wait here. If all ranks have the same fault, only rank 0 reports the fault,
        # because rank 0 aborts the job during this wait.
        time.sleep(_TIME_TO_SPEAK if world and world.rank else 0)
        if is_lost_rank(error):
            print(f"{trainer.name}: {_lost(world)}", file=sys.stderr)
        else:
            traceback.print_exc()
        _end(world, 1)


def _prepare_devices(world: World, trouble: Trouble | None) -> int:
    """Select the devices of this rank, and return the number of this rank's threads.

    ``trouble`` is a fault that this rank found earlier. If any rank has a fault, all ranks stop. A rank with
    a fault does not exit at once: it first reports the fault to all other ranks, so that they stop, too.
    """
    if world.size == 1:
        world.agree(trouble)
    threads = 0
    try:
        threads = framework_of(world).prepare_devices(world)
    except Trouble as found:
        trouble = trouble or found
    world.agree(trouble)
    return threads


def parse(trainer: Trainer, words: list[str] | None) -> tuple[Trainer, Options]:
    """Parse the options of a trainer. Return the trainer that these options configure, and the options. If an
    option is wrong, exit with status 2.
    """
    parser = _parser(trainer)
    values = parser.parse_args(words)
    chosen = vars(values)
    learning, spread, tuning = trainer.learning.taken(chosen), RankSpread.taken(chosen), Tuning.taken(chosen)
    if trainer.configured:
        try:
            trainer = trainer.configured(trainer, values)
        except Trouble as wrong:
            parser.exit(wrong.code, f"{trainer.name}: {wrong.message}\n")
    known = {field.name for field in fields(Options)}
    return trainer, Options(
        **{"data": None, "epochs": trainer.epochs} | {k: v for k, v in chosen.items() if k in known},
        learning=learning.of_batch(values.batch_size or trainer.batch_size),
        spread=spread,
        tuning=tuning,
    )


def _parser(trainer: Trainer) -> argparse.ArgumentParser:
    """Return the parser with all options of a trainer."""
    parser = argparse.ArgumentParser(
        prog=f"python -m toolkit.trainers.{trainer.name.replace('-', '_')}",
        description="Train in one process, or as a rank of a job; only rank 0 prints a log and writes files.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )

    def add(flag: str, **more: Any) -> None:  # noqa: ANN401 - argparse's options have many types
        if flag not in trainer.unused:
            parser.add_argument(flag, **more)

    _add_training(trainer, add)
    _add_output(add)
    RankSpread.add_options(parser)
    Tuning.add_options(parser)
    learning_options.add_options(trainer.learning, parser)
    trainer.add_options(parser)
    return parser


def _add_training(trainer: Trainer, add: Callable[..., None]) -> None:
    """Add the options for data, epochs and batch."""
    if trainer.data:
        add("--data", type=Path, required=True, metavar="DIR", help=f"folder with {trainer.data}")
    add("--output", type=Path, required=True, metavar="DIR", help="folder for the metrics and the model")
    add("--strategy", choices=tuple(STRATEGIES), default="single", help="how to divide the work among ranks")
    add(
        "--epochs",
        type=count,
        default=trainer.epochs,
        help="total number of passes over the data that all ranks make together",
    )
    add(
        "--batch-size",
        type=count_or_auto,
        default=trainer.batch_size,
        help="samples per device in each step; auto: the fastest batch size that fits into memory",
    )
    add(
        "--batch-limit",
        type=count,
        default=Options.batch_limit,
        metavar="N",
        help="largest batch size that --batch-size auto tries",
    )
    add("--seed", type=seed, default=1, help="seed for the initial weights and the order of the samples")


def _add_output(add: Callable[..., None]) -> None:
    """Add the options for checkpoints and logs."""
    add("--fresh", action="store_true", help="start again instead of resuming from a checkpoint in --output")
    add("--keep", type=count, default=Options.keep, metavar="N", help="number of newest checkpoints to keep")
    add(
        "--checkpoint-seconds",
        type=positive,
        default=Options.checkpoint_seconds,
        metavar="S",
        help="write a checkpoint after each epoch, and every S seconds within an epoch",
    )
    add(
        "--log-seconds",
        type=positive,
        default=Options.log_seconds,
        metavar="S",
        help="print a line after each epoch, and every S seconds within an epoch",
    )
    add("--tensorboard", action="store_true", help="also write the metrics in TensorBoard's format")


def _refuse(trainer: Trainer, options: Options) -> None:
    """Exit with an error message if two options exclude each other or an option has no effect. Only one rank
    prints the message.
    """
    if options.batch_limit != Options.batch_limit and options.batch_size:
        complain_once(f"--batch-limit: only for --batch-size auto, not for {options.batch_size}")
    if wrong := find_framework_refusal(trainer, options):
        complain_once(wrong)
    default = trainer.learning.of_batch(options.batch_size or trainer.batch_size)
    if wrong := find_refusal(options.learning, options.strategy, default):
        complain_once(wrong)


def _look(trainer: Trainer, options: Options) -> Trouble | None:
    """Check the data and the output folder before the trainer loads TensorFlow. Return the first fault, or
    ``None`` if there is no fault.
    """
    try:
        if options.data:
            if not options.data.is_dir():
                fill = f"; download the data with: toolkit data get {trainer.data}" * trainer.fetched
                return Trouble(f"{options.data}: no such folder{fill}")
            trainer.check(options.data)
        options.output.mkdir(parents=True, exist_ok=True)
        if not os.access(options.output, os.W_OK):
            return Trouble(f"{options.output}: the folder is not writable")
    except Trouble as trouble:
        return trouble
    except OSError as error:
        return Trouble(f"{options.output}: the folder cannot be created: {error.strerror}")
    return None


def _lost(world: World | None) -> str:
    return (
        f"rank {world.rank if world else 0} lost the connection to another rank, whose process or node "
        "failed; if a checkpoint exists, the same command resumes the training from the last checkpoint"
    )


def _leave(world: World | None, code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    if world:
        world.leave(code)
    sys.exit(code)


def _end(world: World | None, code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    if world and not world.alone:
        # If the abort arrives before the launcher has read the output, the launcher loses the output.
        wait_for_reader(sys.stderr.fileno())
        world.abort(code)
    sys.exit(code)
