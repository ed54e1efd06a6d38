"""Users' programs that were not written for toolkit, with the expected result of a launch on two nodes."""

from dataclasses import dataclass, field

DATA = """import numpy as np
rng = np.random.default_rng(0)
x = rng.normal(size=(256, 8)).astype("float32")
y = (x.sum(1) > 0).astype("int32")
"""
NET = """import tensorflow as tf
def build():
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Input(8), layers.Dense(8, "relu"), layers.Dense(2)])
def compiled(optimizer="adam"):
    model = build()
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model
"""
PLAIN = f"""{DATA}{NET}model = compiled()
model.fit(x, y, verbose=2)
model.save('plain.keras')
print('trained')
"""
HOROVOD = f"""{DATA}{NET}import horovod.tensorflow.keras as hvd
hvd.init()
x, y = x[hvd.rank()::hvd.size()], y[hvd.rank()::hvd.size()]
model = compiled(hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.001 * hvd.size())))
model.fit(x, y, verbose=0, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
if hvd.rank() == 0:
    model.save('joined.keras')
    print('ranks:', hvd.size(), 'samples:', len(x))
"""
MPI = "from mpi4py import MPI\nworld = MPI.COMM_WORLD\ntotal = world.allreduce(world.rank + 1)\n"
SAY = "if world.rank == 0:\n    print('total:', total)\n"


@dataclass(frozen=True)
class Program:
    files: dict[str, str]
    """Texts by file name. A file is executable if its text begins with ``#!``."""
    words: tuple[str, ...]
    """Words of ``toolkit launch`` after its options."""
    said: str
    """Text in the job's output, or in the error if toolkit refuses the program."""
    runs: bool = True
    nodes: int = 2
    wrote: str = ""
    """A file that ``toolkit jobs fetch`` copies."""
    travelling: bool = False
    """Whether toolkit starts the program on the login node, but refuses to copy its files from elsewhere."""
    options: tuple[str, ...] = field(default=())


def refused(files, words, said, **more):
    return Program(files, words, said, runs=False, **more)


PROGRAMS = {
    "keras on one node": Program({"train.py": PLAIN}, ("train.py",), "trained", nodes=1, wrote="plain.keras"),
    "keras on two nodes": refused({"train.py": PLAIN}, ("train.py",), "never joins its ranks: 2 copies"),
    "keras with horovod": Program(
        {"train.py": HOROVOD}, ("train.py",), "ranks: 2 samples: 128", wrote="joined.keras"
    ),
    "argparse": Program(
        {"t.py": f"import argparse\np = argparse.ArgumentParser()\np.add_argument('--epochs', type=int)\n"
                 f"n = p.parse_args().epochs\n{MPI}if world.rank == 0:\n    print('epochs:', n, total)\n"},
        ("t.py", "--", "--epochs", "5"), "epochs: 5 3",
    ),
    "its own --output and --strategy": Program(
        {"t.py": f"import sys\n{MPI}if world.rank == 0:\n    print(sys.argv[1:])\n"},
        ("t.py", "--", "--output", "mine", "--strategy", "x"), "['--output', 'mine', '--strategy', 'x']",
    ),
    "three files": Program(
        {"main.py": "from lib.total import total\nfrom say import say\nsay(total)\n",
         "lib/total.py": MPI, "say.py": "def say(n):\n    print('total:', n)\n"},
        ("main.py",), "total: 3",
    ),
    "three files that join nothing": refused(
        {"main.py": "from lib.net import n\nfrom say import say\nsay(n)\n", "lib/net.py": "n = 1\n",
         "say.py": "def say(n):\n    print(n)\n"},
        ("main.py",), "never joins its ranks",
    ),
    "a command": Program({"t.py": MPI + SAY}, ("--", "python", "t.py"), "total: 3"),
    "a module": Program(
        {"pkg/__init__.py": "", "pkg/__main__.py": "from .work import go\ngo()\n",
         "pkg/work.py": f"{MPI}def go():\n    print('total:', total)\n"},
        ("--", "python", "-m", "pkg"), "total: 3",
    ),
    "a shell script": Program(
        {"run.sh": "set -e\npython t.py\n", "t.py": MPI + SAY}, ("--", "bash", "run.sh"), "total: 3"
    ),
    "a shell script that joins nothing": refused(
        {"run.sh": "set -e\npython t.py\n", "t.py": "print(1)\n"},
        ("--", "bash", "run.sh"), "never joins its ranks",
    ),
    "reads a file beside it": Program(
        {"t.py": f"{MPI}if world.rank == 0:\n    print(open('in.txt').read(), total)\n", "in.txt": "read"},
        ("t.py",), "read 3",
    ),
    "writes a file beside it": Program(
        {"t.py": f"{MPI}if world.rank == 0:\n    open('out.csv', 'w').write('1,2')\n"},
        ("t.py",), "", wrote="out.csv",
    ),
    "copies on purpose": Program(
        {"t.py": "import os\nn = os.environ['TOOLKIT_COPY']\n"
                 "open('mine.txt', 'w').write(n)\nprint('copy', n)\n"},
        ("--copies", "t.py"), "copy 1", wrote="copy-1/mine.txt",
    ),
    "a typo": refused({"t.py": f"{MPI}pritn(total)\n"}, ("t.py",), "t.py:4: the name `pritn` is not defined"),
    "a fault of syntax": refused({"t.py": f"{MPI}print(total\n"}, ("t.py",), "t.py:4: '(' was never closed"),
    "a missing import": refused({"t.py": f"import cv2\n{MPI}"}, ("t.py",), "has no module `cv2`"),
    "a misspelt import": refused({"t.py": f"import numpyy\n{MPI}"}, ("t.py",), "did you mean numpy?"),
    "a notebook export": refused(
        {"t.py": f"get_ipython().run_line_magic('matplotlib', 'inline')\n{MPI}"}, ("t.py",), "get_ipython"
    ),
    "a misspelt command": refused({"t.py": MPI}, ("--", "pyhton", "t.py"), "no command `pyhton`"),
    "an ignored file": refused(
        {"t.py": MPI, "in.csv": "1", ".gitignore": "*.csv\n"},
        ("t.py", "--", "in.csv"), "in.csv is not copied to the cluster", travelling=True,
    ),
    "this option is for trainers": refused(
        {"t.py": MPI}, ("--strategy", "horovod", "t.py"), "this option is for trainers, but"
    ),
    "pytorch without torch in the image ": refused(
        {"t.py": "import torch\nimport torch.distributed as dist\ndist.init_process_group('gloo')\n"},
        ("t.py",), "has no module `torch`",
    ),
    "too large": refused(
        {"t.py": MPI, "big.bin": "SIZE:300000000"}, ("t.py",), "its largest files", travelling=True
    ),
    "an executable file": Program(
        {"t.py": f"#!/usr/bin/env python\n{MPI}{SAY}"}, ("--", "./t.py"), "total: 3"
    ),
    "a file that is not executable": refused({"t.py": MPI}, ("--", "./t.py"), "./t.py is not executable"),
    "a name with a blank": Program({"my net.py": MPI + SAY}, ("my net.py",), "total: 3"),
    "another encoding": Program(
        {"t.py": f"# -*- coding: latin-1 -*-\nname = 'Zoë'\n{MPI}{SAY}"}, ("t.py",), "total: 3"
    ),
    "settings in another folder": Program(
        {"src/t.py": f"import sys\n{MPI}if world.rank == 0:\n    print(open(sys.argv[1]).read(), total)\n",
         "conf/a.txt": "small", "pyproject.toml": ""},
        ("src/t.py", "--", "conf/a.txt"), "small 3",
    ),
    "a package below src": Program(
        {"src/__init__.py": "", "src/net.py": "", "src/train.py": f"from . import net\n{MPI}{SAY}"},
        ("--", "python", "-m", "src.train"), "total: 3",
    ),
    "code on the command line": Program(
        {}, ("--", "python", "-c", f"{MPI}{SAY}"), "total: 3",
    ),
    "options of the program before the dashes": refused(
        {"t.py": MPI}, ("t.py", "--epochs", "5"), "of your program goes after `--`, as in: `-- --epochs"
    ),
    "a command without dashes": refused({"t.py": MPI}, ("python", "t.py"), "a command goes after `--`"),
    "mpirun in the command": refused(
        {"t.py": MPI}, ("--", "mpirun", "-np", "2", "python", "t.py"), "leave out `mpirun`: toolkit starts"
    ),
    "srun in the command": refused(
        {"t.py": MPI}, ("--", "srun", "python", "t.py"), "leave out `srun`: toolkit starts the ranks"
    ),
    "a container in the command": refused(
        {"t.py": MPI}, ("--", "apptainer", "exec", "x.sif", "python", "t.py"), "toolkit starts the container"
    ),
    "a command in one word": refused({"t.py": MPI}, ("--", "python t.py"), "write the words separately"),
    "a variable before the command": refused(
        {"t.py": MPI}, ("--", "OMP_NUM_THREADS=1", "python", "t.py"), "give `--env OMP_NUM_THREADS=1`"
    ),
    "a shell line in one word": refused(
        {"t.py": MPI}, ("--", "cd lib && python t.py"), "run the command in a shell"
    ),
    "a word of the shell": refused({"t.py": MPI}, ("--", "cd", "lib"), "`cd` is a command of the shell"),
    "a misspelt file": refused({"train.py": MPI}, ("--", "python", "tran.py"), "did you mean train.py?"),
    "a misspelt module": refused(
        {"pkg/__init__.py": "", "pkg/work.py": MPI}, ("--", "python", "-m", "pkg.works"),
        "the project has no module `pkg.works`",
    ),
    "a notebook": refused({"n.ipynb": "{}"}, ("n.ipynb",), "jupyter nbconvert --to script n.ipynb"),
    "a shell script as the program": refused({"run.sh": "true\n"}, ("run.sh",), "launch -- bash run.sh"),
    "a module of the folder above": Program(
        {"scripts/t.py": f"import os, sys\nsys.path.append(os.path.join(os.path.dirname(__file__), '..'))\n"
                         f"from common import name\n{MPI}if world.rank == 0:\n    print(name, total)\n",
         "common.py": "name = 'common'\n", "setup.cfg": ""},
        ("scripts/t.py",), "common 3",
    ),
    "a src layout": refused(
        {"src/net/__init__.py": "", "src/net/train.py": MPI, "pyproject.toml": ""},
        ("--", "python", "-m", "net.train"), "give `--env PYTHONPATH=src`",
    ),
    "a src layout with its path": Program(
        {"src/net/__init__.py": "", "src/net/train.py": "from net.work import n\nprint('total:', n)\n",
         "src/net/work.py": f"{MPI}n = total\n"},
        ("--", "python", "-m", "net.train"), "total: 3", options=("--env", "PYTHONPATH=src"),
    ),
    "a pool of mpi4py": Program(
        {"t.py": "from mpi4py import MPI\nfrom mpi4py.futures import MPICommExecutor\n"
                 "with MPICommExecutor(MPI.COMM_WORLD, root=0) as pool:\n    if pool:\n"
                 "        print('sum:', sum(pool.map(abs, [-1, -2])))\n"},
        ("t.py",), "sum: 3",
    ),
    "a pool that starts its workers": refused(
        {"t.py": "from mpi4py.futures import MPIPoolExecutor\nMPIPoolExecutor().map(abs, [1])\n"},
        ("t.py",), "`python -m mpi4py.futures` before the script",
    ),
    "processes in each rank": Program(
        {"t.py": "import multiprocessing as mp\nif __name__ == '__main__':\n    from mpi4py import MPI\n"
                 "    with mp.Pool(2) as pool:\n        part = sum(pool.map(abs, [-1, 2]))\n"
                 "    print('sum:', MPI.COMM_WORLD.allreduce(part))\n"},
        ("t.py",), "sum: 6",
    ),
    "a wrong option": refused(
        {"t.py": f"import argparse\np = argparse.ArgumentParser()\np.add_argument('--rate', type=float)\n"
                 f"a = p.parse_args()\n{MPI}"},
        ("t.py", "--", "--rates", "1"), "unrecognized arguments: --rates 1 (did you mean --rate?)",
    ),
    "an absent file": refused(
        {"t.py": f"import json, sys\nsettings = json.load(open(sys.argv[1]))\n{MPI}", "net.json": "{}"},
        ("t.py", "--", "nets.json"), "t.py:2: nets.json: no such file (did you mean net.json?)",
    ),
    "a secret that it reads": refused(
        {"t.py": f"key = open('.env').read()\n{MPI}", ".env": "KEY=1\n"},
        ("t.py",), ".env is not copied to the cluster: the file may contain secrets", travelling=True,
    ),
    "a question": refused({"t.py": f"n = input()\n{MPI}"}, ("t.py",), "input() waits for keyboard input"),
    "Windows line ends": refused(
        {"run.sh": "#!/bin/sh\r\npython t.py\r\n", "t.py": MPI},
        ("--", "./run.sh"),
        "has Windows line endings",
    ),
    "the interpreter of a machine": refused(
        {"t.py": f"#!/home/me/conda/bin/python\n{MPI}"}, ("--", "./t.py"), "write `#!/usr/bin/env python3`"
    ),
    "conda in a shell script": refused(
        {"run.sh": "conda activate tf\npython t.py\n", "t.py": MPI},
        ("--", "bash", "run.sh"), "remove the lines with `conda`: the image replaces the environment",
    ),
    "a command of Slurm in the script": refused(
        {"t.py": f"import subprocess\nhosts = subprocess.check_output(['scontrol', 'show'])\n{MPI}"},
        ("t.py",), "has no command `scontrol`",
    ),
    "a relative import": refused(
        {"pkg/t.py": f"from .net import n\n{MPI}", "pkg/net.py": "n = 1\n", "setup.cfg": ""},
        ("pkg/t.py",), "toolkit launch … -- python -m pkg.t",
    ),
    "a folder as the program": refused({"pkg/__main__.py": MPI}, ("pkg",), "toolkit launch -- python -m pkg"),
}  # fmt: skip
