"""Run DraftMesh from a checkout: `python run.py --help`."""

import sys

try:
    from draftmesh.cli import main
except ModuleNotFoundError as error:
    print(f"{error}; install first: pip install -e . -c constraints.txt", file=sys.stderr)
    sys.exit(2)

if __name__ == "__main__":
    main()
