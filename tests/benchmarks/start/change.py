"""Change one package and launch: python -m tests.benchmarks.start.change CLUSTER IMAGE.sif WHEELS.

``CLUSTER`` is a virtual cluster with two nodes. ``IMAGE.sif`` is a file on this machine, and contains Python.
``WHEELS`` is a folder with the wheels of PACKAGES and RELEASES, so that the times contain no download. On
the login node, the program creates an environment file, which adds three packages to the image. In each
round it changes the release of one package with ``toolkit env add``, and launches a job on two nodes that
imports the package. The times of the first two rounds are not used.
"""

import argparse
import os
import shlex
import subprocess
import time
from pathlib import Path
from statistics import median

from tests.benchmarks.start.launch import MARK, watched
from toolkit.cluster.access import config_of

PACKAGES = ("rich==14.0.0", "xxhash==3.5.0", "boltons==24.0.0")
RELEASES = ("boltons==24.1.0", "boltons==24.0.0")
PROGRAM = ("python", "-c", f"import boltons, rich, xxhash; print('{MARK}')")
_FOLDER = "change-one-package"


def main() -> None:
    """Measure, and print each round and the medians."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cluster")
    options.add_argument("image", type=Path)
    options.add_argument("wheels", type=Path)
    options.add_argument("--rounds", type=int, default=10)
    asked = options.parse_args()
    ssh = ("ssh", "-F", str(config_of(asked.cluster)), "login")

    def on_login(text: str) -> float:
        began = time.monotonic()
        subprocess.run(
            [*ssh, f"export PIP_NO_INDEX=1; {text}"], check=True, timeout=600, stdout=subprocess.DEVNULL
        )
        return time.monotonic() - began

    on_login(
        f"rm -rf {_FOLDER}; mkdir {_FOLDER}; cat > {_FOLDER}/requirements.txt <<< '{chr(10).join(PACKAGES)}'"
    )
    for source, target in ((asked.image, "centre.sif"), (asked.wheels, "wheels")):
        words = ("scp", "-r", "-q", "-F", ssh[2], str(source), f"login:{_FOLDER}/{target}")
        subprocess.run(words, check=True, timeout=600)
    env = f"{_FOLDER}/my.env"
    over = f"--over {_FOLDER}/centre.sif --find-links {_FOLDER}/wheels"
    created = on_login(f"toolkit env create -f {_FOLDER}/requirements.txt {over} -o {env}")
    print(f"toolkit env create: {created:.1f} s", flush=True)
    launch = shlex.split(f"toolkit launch --image {_FOLDER}/centre.sif --env-image {env} --nodes 2 --")
    times: list[tuple[float, float, float]] = []
    for number in range(2 * len(RELEASES) + asked.rounds):
        changed = on_login(f"toolkit env add {env} {shlex.quote(RELEASES[number % len(RELEASES)])} {over}")
        first, _ = watched([*launch, *PROGRAM], ssh)
        if number >= len(RELEASES):
            times.append((changed, first, changed + first))
        print(
            f"{number} load {os.getloadavg()[0]:.1f}: change {changed:.2f} s, first output {first:.2f} s",
            flush=True,
        )
    change, first, both = (median(column) for column in zip(*times, strict=True))
    slowest = max(total for _, _, total in times)
    print(f"median of {len(times)}: change {change:.2f} s, first output {first:.2f} s, both {both:.2f} s")
    print(f"slowest: {slowest:.2f} s")


if __name__ == "__main__":
    main()
