"""Other ways to read the tensors of a head, for when the configured one does not work."""

import copy
from dataclasses import replace
from typing import Any

from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.eagle.head import Head


def suspects(head: Head, target: Target) -> dict[str, Head]:
    """Heads of the same tensors that read a target's layers, or use its tables and norms, in
    another way, by what would be wrong with this one."""
    config = head.config
    found: dict[str, Head] = {}
    if config.version == 3:
        for shift in (-1, 1):
            capture = tuple(layer + shift for layer in config.capture)
            if min(capture) >= 0 and max(capture) < target.num_layers:
                cause = f"layer ids off by one: it should read {list(capture)}, not "
                found[f"{cause}{list(config.capture)}"] = _other(head, capture=capture)
        flag = not config.residual_normed
        found[f"norm_before_residual should be {str(flag).lower()}"] = _other(
            head, residual_normed=flag
        )
        flag = not config.head_normed
        found[f"the LM head should read {'' if flag else 'un'}normed states"] = _other(
            head, head_normed=flag
        )
    if config.own_embedding and config.hidden == target.hidden_size:
        found["its own embed_tokens do not belong to it"] = _other(head, own_embedding=False)
    if config.own_lm_head:
        found["its own lm_head does not belong to it"] = _other(head, own_lm_head=False)
    return found


def _other(head: Head, **changes: Any) -> Head:
    other = copy.copy(head)
    other.config = replace(head.config, **changes)
    return other
