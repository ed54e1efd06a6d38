"""``python -m toolkit``."""

from toolkit.cli.main import main

main()
