import sys
from tests.matrix import build, images
from tests.matrix.habits import HERE
images.SPECS = HERE / "images.toml"
names=[n for n in images.specs() if n.startswith("fresh")] if len(sys.argv)<2 else sys.argv[1:]
sys.exit(build.main(names))
