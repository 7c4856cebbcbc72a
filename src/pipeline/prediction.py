"""What a speed-up should be, from what was counted: two formulas beside the measurement."""

from draftmesh.pipeline.metrics import Metrics, alpha
from draftmesh.registry.contracts.counters import Counters


def predict(counters: Counters, plain_step_s: float | None = None, tree: bool = False) -> Metrics:
    """Predicted speed-ups over plain decoding.

    `plain_step_s` is the measured time of one round of plain decoding of the same batch. With K the
    mean number of draft tokens per step:

    - predicted_speedup_seed, a rule of thumb: a*K / (1 + cost_draft / cost_target), a the
      acceptance rate, cost_draft the whole drafting phase of a round, cost_target a plain step, or
      the verify forward where none was measured. It leaves the bonus token out.
    - predicted_speedup (Leviathan et al. 2023, theorem 3.8, with a verify cost):
      (1 - alpha^(K+1)) / ((1 - alpha) * (K*c + v)), c and v the costs of one draft token and of a
      verify forward in plain steps; None where no plain step was measured. For a tree the expected
      tokens per step are 1 + sum over depths d of P(accepted depth >= d) instead.

    Both are 1 when nothing was drafted, and None when there was no decode step at all.
    """
    if not counters.steps or not counters.verify_s:
        return {"predicted_speedup": None, "predicted_speedup_seed": None}
    if not counters.drafted:
        return {"predicted_speedup": 1.0, "predicted_speedup_seed": 1.0}
    draft_s = counters.draft_s / counters.rounds
    verify_s = counters.verify_s / counters.rounds
    rule = counters.accepted / counters.steps / (1 + draft_s / (plain_step_s or verify_s))
    tokens = tree_tokens(counters) if tree else chain_tokens(counters)
    gain = tokens * plain_step_s / (draft_s + verify_s) if plain_step_s else None
    return {"predicted_speedup": gain, "predicted_speedup_seed": rule}


def chain_tokens(counters: Counters) -> float:
    """Expected tokens per step of a chain of K drafts, each accepted with probability alpha."""
    rate, k = alpha(counters), counters.drafted / counters.steps
    return k + 1 if rate == 1 else (1 - rate ** (k + 1)) / (1 - rate)


def tree_tokens(counters: Counters) -> float:
    """1 + sum over depths d of P(accepted depth >= d), as counted."""
    deepest = max(counters.histogram, default=0)
    reached = sum(
        steps
        for depth in range(1, deepest + 1)
        for accepted, steps in counters.histogram.items()
        if accepted >= depth
    )
    return 1 + reached / counters.steps
