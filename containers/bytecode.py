"""Compile the modules that a training imports, and no others: they make its start fast, the rest only room.

Runs once, in the image's own build. They all go into one file, from which ``toolkit_modules.py`` imports
them. What is written depends on no time: a module and its source are taken to belong together, as nothing
in an image changes any more.
"""

import importlib
import os
import py_compile
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import cache_from_source, find_spec
from pathlib import Path

import toolkit_modules

WANTED = (
    ("mpi4py.MPI", "mpi4py"),
    ("horovod.tensorflow.keras", "horovod", "tensorflow"),
    ("horovod.torch", "horovod", "torch"),
    ("tensorflow", "tensorflow"),
    ("tensorflow.keras", "tensorflow"),
    ("tf_keras", "tf_keras"),
    ("keras", "keras"),
    ("torch.distributed", "torch"),
    ("jax", "jax"),
    ("numpy", "numpy"),
    ("jupyterlab.labapp", "jupyterlab"),
    ("ipykernel.kernelapp", "ipykernel"),
    ("jedi", "jedi"),
)
"""Each module, and the packages that it needs."""
ROOTS = ("/usr/lib/python3", "/opt/toolkit/venv/")
HEADER = 16
"""Bytes before the code in a compiled module: https://docs.python.org/3/library/importlib.html"""

FIT = """
import numpy as np
import tensorflow as tf
layers = [tf.keras.layers.Conv2D(2, 3), tf.keras.layers.BatchNormalization(), tf.keras.layers.Flatten(),
          tf.keras.layers.Dense(2)]
model = tf.keras.Sequential(layers)
model.compile("adam", "mse", metrics=["accuracy"])
data = tf.data.Dataset.from_tensor_slices((np.zeros((4, 8, 8, 1), "float32"), np.zeros((4, 2), "float32")))
model.fit(data.batch(2), verbose=0)
model.save("/build/bytecode.keras")
tf.keras.models.load_model("/build/bytecode.keras").predict(np.zeros((1, 8, 8, 1)), verbose=0)
"""


def imported() -> list[str]:
    """Import what there is, train for a moment, and return the sources of all modules in their order."""
    for name, *packages in WANTED:
        if all(map(find_spec, packages)):
            importlib.import_module(name)
    if find_spec("tensorflow"):
        exec(compile(FIT, "fit", "exec"), {})  # noqa: S102 - the text above
    for name in ("argparse", "json", "subprocess", "socket", "http.server", "logging", "concurrent.futures"):
        importlib.import_module(name)
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    return list(dict.fromkeys(f for f in files if f.endswith(".py") and f.startswith(ROOTS)))


def compiled(source: str | Path, target: Path) -> Path:
    """Compile one module into a file that Python uses even if the source changes."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), str(target), doraise=True, invalidation_mode=mode)
    return target


def main() -> None:
    """List in one process and compile in a second, as what is loaded already shows in what is written."""
    if sys.argv[1:] == ["list"]:
        print("\n".join(imported()))  # noqa: T201 - for the first process
        return
    for folder in (*Path("/usr/lib").glob("python3*"), Path("/opt/toolkit/venv/lib")):
        for old in sorted(folder.rglob("*.pyc")):
            old.unlink()
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "TF_CPP_MIN_LOG_LEVEL": "3"}
    listing = [sys.executable, __file__, "list"]
    said = subprocess.run(listing, env=env, capture_output=True, text=True, check=False)
    if said.returncode:
        sys.exit(f"what a training imports could not be imported:\n{said.stderr}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "module.pyc")
        sources = said.stdout.splitlines()
        modules = [(source, compiled(source, file).read_bytes()[HEADER:]) for source in sources]
    site = Path(sysconfig.get_path("purelib"))
    finder = shutil.copy(toolkit_modules.__file__, site)
    compiled(finder, Path(cache_from_source(finder)))
    # Such files are read in the order of their names; what another one imports is to be found here, too.
    (site / "__toolkit_modules.pth").write_text("import toolkit_modules; toolkit_modules.install()\n")
    # Last, as a folder that is newer than the file is not trusted.
    toolkit_modules.write(str(site / "toolkit_modules.bin"), modules)


if __name__ == "__main__":
    main()
