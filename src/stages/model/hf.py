"""Any Hugging Face causal LM: a local folder or a Hub id."""

from dataclasses import dataclass
from pathlib import Path

from draftmesh.registry import register
from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.registry.errors import UserError
from draftmesh.stages.model.loading import load_checkpoint
from draftmesh.stages.model.options import LoadOptions


@register("model", "hf")
class HuggingFace:
    """A Hugging Face causal LM from a local folder or the Hub (model.path)."""

    @dataclass(frozen=True)
    class Config:
        """`path` is a folder or a Hub id; `revision` a Hub branch, tag or commit; `layers` loads
        the first N layers only."""

        name: str = "hf"
        path: str | None = None
        revision: str | None = None
        dtype: str = "auto"
        device: str = "auto"
        device_map: str | None = None
        attention: str = "auto"
        trust_remote_code: bool = False
        layers: int | None = None

    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Checkpoint:
        """Load it. Raises UserError when there is nothing to load or it is no causal LM."""
        config = self.config
        if not config.path:
            raise UserError("model=hf needs model.path=<folder or Hub id>")
        options = LoadOptions(
            dtype=config.dtype,
            device=config.device,
            attention=config.attention,
            device_map=config.device_map,
            trust_remote_code=config.trust_remote_code,
            revision=config.revision,
            layers=config.layers,
        )
        folder = Path(config.path).expanduser()
        name = folder.resolve().name if folder.exists() else config.path
        return load_checkpoint(config.path, name, options)
