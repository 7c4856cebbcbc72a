"""The command line: `python run.py` and the console script `draftmesh`."""

import sys
from pathlib import Path
from typing import NoReturn

from draftmesh.cli.help_text import help_text


def main() -> NoReturn:
    """Exit with 0, 1 (failed), 2 (the user's mistake) or 130 (interrupted)."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        script = Path(sys.argv[0]).name
        print(help_text(f"python {script}" if script.endswith(".py") else script))
        sys.exit(0)
    from draftmesh.cli.app import start

    sys.exit(start())


__all__ = ["main"]
