"""Images with common habits of users, and the outcomes of their launches on every kind of virtual cluster."""

from pathlib import Path

HERE = Path(__file__).parent
TRUTH = HERE / "truth"
