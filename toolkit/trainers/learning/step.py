"""Update the model with one batch on one device."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.learning.precision import enlarge_loss

if TYPE_CHECKING:
    import tensorflow as tf

    from toolkit.trainers.kinds import Step
    from toolkit.trainers.ranks.world import World

Gradients = Callable[["tf.Tensor", "tf.Tensor", "tf.Tensor"], "tuple[Any, Any, Any]"]
"""A function that computes the gradients of a batch. Its arguments are the inputs, the classes (correct
labels), and the number of samples over which to average the loss. The function returns the sum of the losses,
the number of correct predictions, and the gradients of the mean loss.
"""


class GivenGradients:
    """A substitute for ``tf.GradientTape`` that returns the gradients passed to the constructor."""

    def __init__(self, gradients: "Sequence[tf.Tensor]") -> None:
        self._gradients = gradients

    def gradient(self, *_: object, **__: object) -> "list[tf.Tensor]":
        return list(self._gradients)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Return ``None``, so that Python does not suppress an exception of the ``with`` block."""


def training(
    model: "tf.keras.Model",
    optimizer: "tf.keras.optimizers.Optimizer",
    world: "World",
    learning: Learning,
    *,
    compiled: bool = False,
) -> "Step":
    """Return the training step: a function that updates the model with the inputs and classes of a batch. The
    training step returns the sum of the losses and the number of correct predictions.

    If ``compiled`` is true, XLA compiles the forward and backward pass. XLA never compiles the optimizer's
    update, because the update may send messages between ranks.
    """
    import tensorflow as tf

    compute = _gradients(model, optimizer, world, learning)
    if compiled:
        compute = tf.function(compute, jit_compile=True)

    def step(inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        if learning.accumulate == 1:
            loss, hits, found = compute(inputs, classes, tf.shape(classes)[0])
        else:
            loss, hits, found = _accumulate(compute, model, inputs, classes, learning.accumulate)
        # Horovod 0.28 averages gradients in minimize(), but not in apply_gradients().
        optimizer.minimize(loss, model.trainable_variables, tape=GivenGradients(found))
        return tf.cast(loss, tf.float64), hits

    return step


def _gradients(
    model: "tf.keras.Model",
    optimizer: "tf.keras.optimizers.Optimizer",
    world: "World",
    learning: Learning,
) -> Gradients:
    import tensorflow as tf

    def compute(inputs: "tf.Tensor", classes: "tf.Tensor", samples: "tf.Tensor") -> "tuple[Any, Any, Any]":
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            each = losses(outputs, classes, learning.label_smoothing)
            count = tf.cast(samples, tf.float32)
            mean = tf.reduce_sum(each) / (count * world.summed)
            if model.losses:
                # With --accumulate, ``inputs`` is a piece of a batch, so scale the regularisation losses.
                part = tf.cast(tf.shape(classes)[0], tf.float32) / (count * world.summed)
                mean += part * tf.add_n(model.losses)
            mean = enlarge_loss(mean, optimizer)
        found = tape.gradient(mean, model.trainable_variables)
        # Make the sparse gradient of an embedding dense, so that weight decay also applies to unused rows.
        whole = [one if one is None else tf.convert_to_tensor(one) for one in found]
        return tf.reduce_sum(each), right(outputs, classes), whole

    return compute


def _accumulate(
    compute: Gradients, model: "tf.keras.Model", inputs: "tf.Tensor", classes: "tf.Tensor", pieces: int
) -> "tuple[Any, Any, Any]":
    """Split a batch into ``pieces`` pieces and compute the gradients of one piece after another. Return the
    sums of losses, correct predictions and gradients over all pieces.
    """
    import tensorflow as tf

    samples = tf.shape(classes)[0]
    count = tf.minimum(pieces, samples)

    def piece(number: Any, loss: Any, hits: Any, sums: Any) -> Any:  # noqa: ANN401
        start, stop = number * samples // count, (number + 1) * samples // count
        more, right, found = compute(inputs[start:stop], classes[start:stop], samples)
        sums = [one + other for one, other in zip(sums, found, strict=True)]
        return number + 1, loss + more, hits + right, sums

    zeros = [tf.zeros_like(variable) for variable in model.trainable_variables]
    # Compute one piece of the batch after another. Several pieces at the same time would save no memory.
    _, loss, hits, sums = tf.while_loop(
        lambda number, *_: number < count, piece, (0, 0.0, 0, zeros), parallel_iterations=1
    )
    return loss, hits, sums


def scoring(model: "tf.keras.Model") -> "Step":
    """Return the evaluation step: a function that returns the sum of the losses and the number of correct
    predictions of a batch.
    """
    import tensorflow as tf

    def step(inputs: "tf.Tensor", classes: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        outputs, classes = model(inputs, training=False), tf.cast(classes, tf.int32)
        return tf.reduce_sum(losses(outputs, classes)), right(outputs, classes)

    return step


def losses(outputs: "tf.Tensor", classes: "tf.Tensor", smoothing: float = 0.0) -> "tf.Tensor":
    """Return the cross-entropy of each sample, computed from logits.

    ``smoothing`` is the part of the target probability that label smoothing spreads over all classes (Szegedy
    et al. 2016, arXiv:1512.00567, section 7).
    """
    import tensorflow as tf

    outputs = tf.cast(outputs, tf.float32)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=outputs)
    if not smoothing:
        return sparse
    every = -tf.reduce_mean(tf.nn.log_softmax(outputs), axis=-1)
    return (1 - smoothing) * sparse + smoothing * every


def right(outputs: "tf.Tensor", classes: "tf.Tensor") -> "tf.Tensor":
    """Return the number of correct predictions as int32, because large sums in float32 are inexact."""
    import tensorflow as tf

    hits = tf.argmax(outputs, axis=-1, output_type=tf.int32) == classes
    return tf.reduce_sum(tf.cast(hits, tf.int32))
