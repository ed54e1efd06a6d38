"""Images as other people build them, and what their launches did on every flavour of the virtual cluster."""

from pathlib import Path

HERE = Path(__file__).parent
TRUTH = HERE / "truth"
