"""A process that wants a folder of the cache; argv: where builds are counted, and their seconds."""

import sys
import time
from pathlib import Path

from draftmesh.stages.model.cachefolder import ready_folder

counter = Path(sys.argv[1])


def build(work: Path, out: Path) -> None:
    with counter.open("a") as file:
        file.write("built\n")
    (work / "download").write_text("half")
    (out / "weights").write_text("half")
    (counter.parent / "begun").touch()
    time.sleep(float(sys.argv[2]))
    (out / "weights").write_text("whole")


print(ready_folder("toy", build))
