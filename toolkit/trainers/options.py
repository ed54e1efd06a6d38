"""Check the options of a trainer without training: ``python -m toolkit.trainers.options NAME OPTIONS``.

The program prints the strategy that the options select. If an option is wrong, the program prints the error
and exits with status 2. The check of the options does not need TensorFlow or the data.
"""

import importlib
import sys
from typing import NoReturn

from toolkit.trainers.command import parse
from toolkit.trainers.learning.refusals import find_framework_refusal, find_refusal


def main(words: list[str]) -> NoReturn:
    """Check a trainer's options, and exit. ``words`` contains the name of the trainer's module, followed by
    the trainer's options.
    """
    module, *given = words
    trainer, options = parse(importlib.import_module(f"toolkit.trainers.{module}").TRAINER, given)
    default = trainer.learning.of_batch(options.batch_size or trainer.batch_size)
    found = find_refusal(options.learning, options.strategy, default)
    if wrong := found or find_framework_refusal(trainer, options):
        print(f"{trainer.name}: error: {wrong}", file=sys.stderr)
        sys.exit(2)
    print(options.strategy)
    sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
