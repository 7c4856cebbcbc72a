"""What some models do to the logits behind the LM head's product."""

from typing import Any

import torch
from torch import Tensor


def scaled(logits: Tensor, config: Any) -> Tensor:
    """logits [...] of any part of the vocabulary, scaled and soft-capped as the config says."""
    scale = getattr(config, "logit_scale", None)
    if scale is not None:
        logits = logits * scale
    divide = getattr(config, "logits_scaling", None)
    if divide is not None:
        logits = logits / divide
    softcap = getattr(config, "final_logit_softcapping", None)
    if softcap is not None:
        logits = torch.tanh(logits / softcap) * softcap
    return logits
