"""The command line: `python run.py` and the console script `draftmesh`."""

import sys
from typing import NoReturn

from draftmesh.cli.help_text import help_text


def main() -> NoReturn:
    """Exit with 0, 1 (failed), 2 (the user's mistake) or 130 (interrupted)."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(help_text())
        sys.exit(0)
    from draftmesh.cli.app import start

    sys.exit(start())


__all__ = ["main"]
