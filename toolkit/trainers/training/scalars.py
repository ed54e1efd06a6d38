"""Write the metrics of each epoch to files for TensorBoard, in addition to ``metrics.jsonl``.

``tensorboard --logdir OUTPUT`` shows these files. OUTPUT is the trainer's output folder.
"""

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolkit.trainers.trouble import Trouble

FOLDER = "tensorboard"
_TAGS = {
    "loss": "loss/train",
    "test_loss": "loss/test",
    "accuracy": "accuracy/train",
    "test_accuracy": "accuracy/test",
    "learning_rate": "learning_rate",
    "images_per_second": "images_per_second",
    "memory_bytes": "memory_bytes",
}


class Scalars:
    """Writes metrics for TensorBoard. When a run starts a new ``metrics.jsonl``, this class removes
    TensorBoard's files of the earlier run, so that TensorBoard does not show an epoch twice.
    """

    def __init__(self, output: Path) -> None:
        """Set the folder for TensorBoard's files, below the output folder.

        Raises:
            Trouble: if the image has no TensorBoard; TensorFlow 2.21 does not include it.
        """
        if importlib.util.find_spec("tensorboard") is None:
            why = "the image has no TensorBoard; add TensorBoard with `toolkit env create`"
            raise Trouble(f"--tensorboard: {why}", code=2)
        self._folder = output / FOLDER
        self._writer: Any = None

    def begin(self) -> None:
        """Remove the files of an earlier run, and open a new file."""
        import tensorflow as tf

        shutil.rmtree(self._folder, ignore_errors=True)
        self._writer = tf.summary.create_file_writer(str(self._folder))

    def write(self, record: Mapping[str, Any]) -> None:
        """Write the values of a metrics line if the line is about an epoch. Ignore other lines.

        Raises:
            Trouble: if the files cannot be written.
        """
        import tensorflow as tf

        if record["record"] != "epoch":
            return
        try:
            with self._writer.as_default(step=record["epoch"]):
                for name, tag in _TAGS.items():
                    if record.get(name) is not None:
                        tf.summary.scalar(tag, record[name])
            self._writer.flush()
        except tf.errors.OpError as error:
            raise Trouble(f"{self._folder}: cannot be written: {error.message}", code=1) from error
