"""How a checkpoint is to be loaded, whatever it comes from."""

from dataclasses import dataclass

from draftmesh.registry.errors import UserError

_ATTENTION = ("auto", "draftmesh", "sdpa", "eager")
_DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")


@dataclass(frozen=True)
class LoadOptions:
    """Options common to model stages, named as under `model.` on the command line.

    `device_map` (accelerate's) spreads a model over several devices and takes `device`'s place.
    `layers` loads the first N layers only (None: all).
    """

    dtype: str = "auto"
    device: str = "auto"
    attention: str = "auto"
    device_map: str | None = None
    trust_remote_code: bool = False
    revision: str | None = None
    layers: int | None = None

    def check(self) -> None:
        """Raise UserError for a name that does not exist."""
        one_of("model.attention", self.attention, _ATTENTION)
        if self.device_map is not None:
            one_of("model.device_map", self.device_map, _DEVICE_MAPS)


def one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise UserError naming the option unless its value is allowed."""
    if value not in allowed:
        raise UserError(f"{option}={value} is not one of {', '.join(allowed)}")
