"""What a forward over t tokens costs beside a forward over one."""

from collections.abc import Sequence
from statistics import median

import torch

from draftmesh.registry.contracts.target import Target
from draftmesh.stages.engine.clock import now

REPEATS = 15


@torch.inference_mode()
def verify_cost(target: Target, sizes: Sequence[int], prefix: int) -> dict[int, float]:
    """{t: time of a tree of t tokens / time of one token}, medians, behind `prefix` tokens.

    The sizes are measured in turn, round after round, so that a busy machine slows all alike. The
    trees branch (node i hangs below node (i - 1) / 2), as a draft tree does.
    """
    cache = target.new_cache(1, prefix + max(1, *sizes))
    longest = torch.arange(max(prefix, *sizes), device=target.device)[None]
    text = longest % min(target.vocab_size, 1000)
    target.forward(text[:, :prefix], cache, logits_at=torch.tensor([[prefix - 1]]))
    cache.advance(torch.tensor([prefix]))
    times: dict[int, list[float]] = {size: [] for size in (1, *sizes)}
    for _ in range(REPEATS):
        for size, taken in times.items():
            tokens = text[:, :size]
            parents = (torch.arange(size, device=target.device)[None] - 1).div(
                2, rounding_mode="floor"
            )
            start = now(target.device)
            target.forward(tokens, cache, parents=parents if size > 1 else None)
            taken.append(now(target.device) - start)
    single = median(times[1])
    return {size: median(times[size]) / single for size in sizes}
