"""Run ``python -m toolkit``. The syntax of this file is valid in Python 2.6 and later, so that an old Python
can print which version of Python toolkit needs.
"""

import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - pip checks the version only at installation
    sys.stderr.write(
        "error: toolkit needs Python 3.11 or later; this is "
        + ".".join(str(number) for number in sys.version_info[:3])
        + "; uv can install a newer Python: pip install --user uv && uv tool install --python 3.11 '"
        + os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - no pathlib in 2.7
        + "'\n"
    )
    sys.exit(2)

from toolkit.cli.main import main

main()
