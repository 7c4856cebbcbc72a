"""A check that splitting a model did not change what it computes."""

from typing import Any

import torch
from torch import Tensor

from draftmesh.registry import UserError
from draftmesh.stages.parallel.contact import lost_contact
from draftmesh.stages.parallel.plain import plain_forward, sample_tokens

TOLERANCE = {torch.float64: 1e-5, torch.float32: 1e-2}
LOW_PRECISION = 0.3
TOKENS = 24


class Probe:
    """Logits of a model on a few fixed random tokens, before it is changed.

    Built before the model is wrapped in a Target; every rank builds and checks it at the same time,
    since the forwards of a split model communicate.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.tokens = sample_tokens(model, TOKENS, seed=1)
        if any(hasattr(module, "is_transposed") for module in model.modules()):
            model.set_experts_implementation("eager")  # the default has no float64
        self.before = self._logits()

    def check(self, what: str) -> float:
        """The median over tokens of the relative change of the logits since the start.

        Raises UserError if it is beyond rounding, or if the forward fails: the model's layout is
        one that we split wrongly.
        """
        after = self._logits_after(what)
        change = (after - self.before).norm(dim=-1) / self.before.norm(dim=-1).clamp_min(1e-30)
        median = float(change.median())
        if not median <= TOLERANCE.get(self.model.dtype, LOW_PRECISION):
            raise UserError(
                f"{what}: {type(self.model).__name__} computes something else when it is split "
                f"(logits change by {median:.1%}): use parallel=single or another model"
            )
        return median

    def _logits_after(self, what: str) -> Tensor:
        try:
            return self._logits()
        except RuntimeError as error:
            if lost_contact(error) or isinstance(error, torch.OutOfMemoryError):
                raise
            raise UserError(
                f"{what}: {type(self.model).__name__} fails when it is split "
                f"({str(error).partition(chr(10))[0]}): use parallel=single or another model"
            ) from error

    def _logits(self) -> Tensor:
        logits = plain_forward(self.model, self.tokens)[0]
        return logits if logits.dtype == torch.float64 else logits.float()
