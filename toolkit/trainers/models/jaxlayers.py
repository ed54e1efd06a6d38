"""Neural-network layers in JAX, including dropout and batch normalisation, as pairs of pure functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax

Array = Any
"""A JAX array."""

_KEPT = 0.9
"""The share of the old moving average that a batch normalisation keeps in each step. Keras names this
share ``momentum``.
"""

_EPSILON = 1e-3


@dataclass(frozen=True, slots=True)
class JaxModel:
    """A model, or a layer of a model, as two pure functions.

    ``init(key)`` returns two trees of arrays: the parameters, which the optimizer updates, and the state,
    such as moving averages. ``apply(parameters, state, inputs, key)`` returns the outputs and the next state.
    In training, ``key`` is a random key of JAX. In evaluation, ``key`` is ``None``, and ``apply`` returns the
    state unchanged.
    """

    init: Callable[["jax.Array"], tuple[Any, Any]]
    apply: Callable[[Any, Any, Array, "jax.Array | None"], tuple[Array, Any]]


def plain(init: "Callable[[jax.Array], Any]", apply: Callable[[Any, Array], Array]) -> JaxModel:
    """Return a layer made from the functions ``init(key)`` and ``apply(parameters, inputs)``. The layer has
    no state, and ``apply`` draws no random numbers.
    """
    return JaxModel(
        lambda key: (init(key), ()),
        lambda parameters, state, inputs, _: (apply(parameters, inputs), state),
    )


def function(compute: Callable[[Array], Array]) -> JaxModel:
    """Return a layer without parameters that applies ``compute`` to its inputs."""
    return plain(lambda _: (), lambda _, inputs: compute(inputs))


def sequential(*layers: JaxModel) -> JaxModel:
    """Return a model that applies the layers one after another."""

    def init(key: "jax.Array") -> tuple[Any, Any]:
        made = [layer.init(one) for layer, one in zip(layers, _keys(key, len(layers)), strict=True)]
        return [parameters for parameters, _ in made], [state for _, state in made]

    def apply(
        parameters: Any,  # noqa: ANN401
        state: Any,  # noqa: ANN401
        inputs: Array,
        key: "jax.Array | None",
    ) -> tuple[Array, Any]:
        after = []
        keys = _keys(key, len(layers))
        for layer, own, before, one in zip(layers, parameters, state, keys, strict=True):
            inputs, now = layer.apply(own, before, inputs, one)
            after.append(now)
        return inputs, after

    return JaxModel(init, apply)


def residual(branch: JaxModel, shortcut: JaxModel) -> JaxModel:
    """Return a residual block, which adds the outputs of ``branch`` and ``shortcut`` and applies ReLU to the
    sum.
    """

    def init(key: "jax.Array") -> tuple[Any, Any]:
        made = [layer.init(one) for layer, one in zip((branch, shortcut), _keys(key, 2), strict=True)]
        return [parameters for parameters, _ in made], [state for _, state in made]

    def apply(
        parameters: Any,  # noqa: ANN401
        state: Any,  # noqa: ANN401
        inputs: Array,
        key: "jax.Array | None",
    ) -> tuple[Array, Any]:
        keys = _keys(key, 2)
        one, first = branch.apply(parameters[0], state[0], inputs, keys[0])
        other, second = shortcut.apply(parameters[1], state[1], inputs, keys[1])
        return relu(one + other), [first, second]

    return JaxModel(init, apply)


def linear(inputs: int, outputs: int) -> JaxModel:
    """Return a dense layer with ``inputs`` inputs and ``outputs`` outputs."""

    def init(key: "jax.Array") -> dict[str, Array]:
        import jax

        draw = jax.nn.initializers.glorot_uniform()
        return {"bias": jax.numpy.zeros(outputs), "weight": draw(key, (inputs, outputs))}

    return plain(init, lambda own, values: values @ own["weight"] + own["bias"])


def convolution(
    in_channels: int,
    filters: int,
    size: int,
    stride: int = 1,
    *,
    padding: str = "VALID",
    bias: bool = True,
    normal: bool = False,
) -> JaxModel:
    """Return a convolution layer for images of the shape (height, width, channels). The layer has
    ``in_channels`` input channels, ``filters`` output channels, and windows of ``size`` x ``size`` pixels.

    If ``normal`` is true, the initial weights have He's normal distribution. If ``normal`` is false, they
    have Glorot's uniform distribution.
    """

    def init(key: "jax.Array") -> dict[str, Array]:
        import jax

        draws = jax.nn.initializers
        draw = draws.he_normal() if normal else draws.glorot_uniform()
        own = {"weight": draw(key, (size, size, in_channels, filters))}
        return own | ({"bias": jax.numpy.zeros(filters)} if bias else {})

    def apply(parameters: dict[str, Array], images: Array) -> Array:
        import jax

        # Pad both sides by size // 2, as PyTorch does. XLA's SAME may pad the two sides differently.
        around = [(size // 2, size // 2)] * 2 if padding == "SAME" else padding
        found = jax.lax.conv_general_dilated(
            images,
            parameters["weight"],
            (stride, stride),
            around,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        return found + parameters["bias"] if bias else found

    return plain(init, apply)


def normalisation(channels: int) -> JaxModel:
    """Return a batch normalisation layer. In training, the layer uses the mean and variance over the batches
    of all ranks. In evaluation, the layer uses the moving averages in its state.
    """

    def init(_: "jax.Array") -> tuple[Any, Any]:
        import jax.numpy as jnp

        ones, zeros = jnp.ones(channels), jnp.zeros(channels)
        return {"bias": zeros, "scale": ones}, {"mean": zeros, "variance": ones}

    def apply(
        own: dict[str, Array], state: dict[str, Array], images: Array, key: "jax.Array | None"
    ) -> tuple[Array, Any]:
        import jax

        mean, variance = state["mean"], state["variance"]
        if key is not None:
            axes = tuple(range(images.ndim - 1))
            mean, variance = images.mean(axes), images.var(axes)
            count = images.size // images.shape[-1]
            now = {"mean": mean, "variance": variance * (count / max(count - 1, 1))}
            state = {name: _KEPT * state[name] + (1 - _KEPT) * now[name] for name in now}
        factor = own["scale"] * jax.lax.rsqrt(variance + _EPSILON)
        return images * factor + (own["bias"] - mean * factor), state

    return JaxModel(init, apply)


def dropout(share: float) -> JaxModel:
    """Return a dropout layer. In training, the dropout layer sets a random fraction ``share`` (0 to 1) of its
    inputs to 0 and scales up the remaining inputs.
    """

    def apply(_: Any, state: Any, values: Array, key: "jax.Array | None") -> tuple[Array, Any]:  # noqa: ANN401
        import jax

        if key is None:
            return values, state
        # Draw bytes if ``share`` is a multiple of 1/256, because JAX draws bytes faster than 16-bit numbers.
        bits = 8 if (share * 256).is_integer() else 16
        draws = jax.random.bits(key, values.shape, f"uint{bits}")
        return jax.numpy.where(draws < round(share * 2**bits), 0.0, values / (1 - share)), state

    return JaxModel(lambda _: ((), ()), apply)


def relu(values: Array) -> Array:
    """Return the values, with negative values replaced by 0."""
    import jax

    return jax.nn.relu(values)


def pool(images: Array) -> Array:
    """Return the maximum of each window of 2 x 2 pixels. If the number of rows is odd, ignore the last
    row; if the number of columns is odd, ignore the last column.
    """
    count, height, width, channels = images.shape
    even = images[:, : height // 2 * 2, : width // 2 * 2]
    return even.reshape(count, height // 2, 2, width // 2, 2, channels).max((2, 4))


def mean_of_image(images: Array) -> Array:
    """Return the mean of each channel of each image."""
    return images.mean((1, 2))


def _keys(key: "jax.Array | None", count: int) -> Any:  # noqa: ANN401 - random keys, or None
    """Split ``key`` into ``count`` random keys. If ``key`` is ``None``, return a list of ``count`` Nones."""
    import jax

    return [None] * count if key is None or not count else list(jax.random.split(key, count))
