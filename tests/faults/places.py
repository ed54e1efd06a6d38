"""Start the places in which faults run: this machine, containers, podman, and a virtual cluster.

A place starts once, and runs the commands of many faults. Each command runs in a new folder with
``train.py``, the program of the fault.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from subprocess import PIPE, STDOUT

SECONDS = 180.0
LIMITS = (
    "--memory",
    "3g",
    "--memory-swap",
    "3g",
    "--pids-limit",
    "900",
    "--shm-size",
    "256m",
    "--dns",
    "127.0.0.1",
)
_NESTED = (
    *("--cap-add", "ALL", "--cap-drop", "SYS_RESOURCE", "--device", "/dev/fuse"),
    *("--security-opt", "seccomp=unconfined", "--security-opt", "systempaths=unconfined"),
)
"""Docker options for a container in which podman runs."""

_FOLDER = 'mkdir -p "$HOME/project" && cd "$HOME/project" && rm -rf ./* && cat > train.py\n'
_ASKING_ROOT = """\
sudo_on() {
  echo "$2" > "$SHARED/new-$1"; mv "$SHARED/new-$1" "$SHARED/root-$1"
  while [ -e "$SHARED/root-$1" ]; do sleep 0.1; done
  cat "$SHARED/answer-$1"
}
sudo_sh() { sudo_on login "$1"; }
"""
_ROOT = """\
while :; do
  [ -e $0/root-$1 ] && { sh $0/root-$1 > $0/answer-$1 2> /dev/null; rm -f $0/root-$1; }
  sleep 0.1
done"""
"""A shell loop that root runs: it executes the commands that a fault passes to ``sudo_on``.

``$0`` is the shared folder, and ``$1`` is the node's name.
"""

_PODMAN = """\
export PODMAN="podman --cgroup-manager=cgroupfs" RUN="run --cgroups=disabled --network none"
export XDG_RUNTIME_DIR=/tmp/run-ada SHARED=/tmp
mkdir -p $XDG_RUNTIME_DIR
"""
_SMALL = """\
rm -rf /tmp/root; mkdir -p /tmp/root/bin /tmp/root/tmp /tmp/root/opt /tmp/root/usr/bin && cd /tmp/root
for file in sh ls id pwd true cat; do cp "$(command -v $file)" bin/; done
ldd bin/* | grep -o '/[^ ]*' | grep -v : | sort -u | xargs -I F cp --parents F . 2>/dev/null
"""


class Place:
    """A place where commands run; the command line ``words`` starts a shell there."""

    def __init__(self, words: Sequence[str], before: str = "", home: str = "/root") -> None:
        self._words, self._before, self._home = words, before, home

    def run(self, command: str, program: str) -> tuple[str, int]:
        """Run a command in a new folder with the program ``train.py``; return its output and exit status."""
        script = f"{self._before}{_FOLDER}exec < /dev/null\n{command}\n"
        words = [*self._words, "-c", script]
        with subprocess.Popen(words, stdin=PIPE, stdout=PIPE, stderr=STDOUT) as running:
            try:
                written, _ = running.communicate(program.encode(), timeout=SECONDS)
            except subprocess.TimeoutExpired:
                running.kill()
                written, _ = running.communicate()
        return written.decode("utf-8", "replace").replace(self._home, "/home/ann"), running.returncode


@contextmanager
def here(_image: str) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        yield Place(["bash"], f"export HOME={folder}\n", folder)


@contextmanager
def started(image: str, options: Sequence[str] = ()) -> Iterator[str]:
    words = ["docker", "run", "-d", "--rm", *LIMITS, *options, "--entrypoint", "sleep", image, "1800"]
    name = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield name
    finally:
        subprocess.run(["docker", "rm", "-f", name], check=True, capture_output=True)


@contextmanager
def container(image: str, options: Sequence[str] = ()) -> Iterator[Place]:
    with started(image, options) as name:
        yield Place(["docker", "exec", "-i", "-e", "HOME=/root", name, "bash"])


def _as_root(container: str, shared: str, node: str) -> None:
    words = ["docker", "exec", "-d", container, "sh", "-c", _ROOT, shared, node]
    subprocess.run(words, check=True)


@contextmanager
def podman(image: str) -> Iterator[Place]:
    """Yield a container in which an ordinary user has podman and a small image."""
    with started(image, (*_NESTED, "--tmpfs", "/home/ada:exec,uid=1000,gid=1000")) as name:
        user = ["docker", "exec", "-i", "-u", "ada", "-e", "HOME=/home/ada", "-e", "USER=ada", name, "bash"]
        _as_root(name, "/tmp", "login")
        made = f"{_PODMAN}{_SMALL}tar -c . | $PODMAN import - small"
        subprocess.run([*user, "-c", made], check=True, capture_output=True)
        yield Place(user, _PODMAN + _ASKING_ROOT, "/home/ada")


@contextmanager
def quota(_image: str) -> Iterator[Place]:
    """Yield a place whose home folder has a quota of 1 MB; needs root, a loop device and btrfs-progs."""
    with tempfile.TemporaryDirectory() as folder:
        disk, at = Path(folder) / "disk", Path(folder) / "at"
        at.mkdir()
        script = (
            f"truncate -s 300M {disk} && mkfs.btrfs -q {disk} && mount -o loop {disk} {at} && "
            f"btrfs quota enable {at} && btrfs subvolume create {at}/ann && btrfs qgroup limit 1M {at}/ann"
        )
        subprocess.run(["bash", "-c", script], check=True, capture_output=True)
        link = Path("/tmp/ann")
        link.symlink_to(at / "ann")
        before = f"export HOME={folder} QUOTA={link}; rm -f {link}/*; sync\n"
        try:
            yield Place(["bash"], before, folder)
        finally:
            link.unlink()
            subprocess.run(["umount", str(at)], check=True)


@contextmanager
def slurm(_image: str) -> Iterator[Place]:
    """Yield the virtual cluster ``faults`` as a place.

    The cluster must already run: start it with `toolkit cluster up --name faults`. The environment variable
    ``TORCH_SIF`` must name the SIF file of ``toolkit/torch-cpu``.
    """
    login, sif = "toolkit-faults-login", os.environ["TORCH_SIF"]
    subprocess.run(["docker", "cp", "-q", sif, f"{login}:/work/torch.sif"], check=True)
    small = f"{_SMALL}chmod 777 /work; apptainer -s build -F /work/small.sif /tmp/root"
    subprocess.run(["docker", "exec", login, "bash", "-c", small], check=True, capture_output=True)
    for node in ("login", "node2"):
        _as_root(f"toolkit-faults-{node}", "/work", node)
    user = ["docker", "exec", "-i", "-u", "ada", "-e", "HOME=/work/ada", "-e", "USER=ada", login, "bash"]
    yield Place(user, f"export SHARED=/work\n{_ASKING_ROOT}", "/work/ada")


KINDS = {"here": here, "podman": podman, "quota": quota, "slurm": slurm}


def place(where: str, image: str) -> AbstractContextManager[Place]:
    return KINDS.get(where, container)(image)
