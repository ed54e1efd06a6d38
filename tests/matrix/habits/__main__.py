"""Build and launch the images of ``habits/images.toml``; tests.matrix.run documents the options."""

import sys

from tests.matrix import build, images, run
from tests.matrix.habits import HERE, TRUTH

if __name__ == "__main__":
    images.SPECS = HERE / "images.toml"
    sys.exit(
        build.main(list(images.specs())) or run.main(["--truth", str(TRUTH), "--central", "", *sys.argv[1:]])
    )
