"""The reduced vocabulary a head predicts."""

from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from draftmesh.stages.task.training.corpus import Chat


def frequent_tokens(
    chats: Sequence[Chat], indices: Iterable[int], size: int, always: Iterable[int]
) -> Tensor:
    """The `size` most frequent answer tokens and `always`, ascending, int64 [size].

    Tokens never seen fill up the rest from id 0, so that the size is exact.
    """
    counts: Counter[int] = Counter()
    for index in indices:
        counts.update(chats[index].ids[chats[index].prompt :])
    chosen = dict.fromkeys(always)
    ranked = sorted(counts, key=lambda token: (-counts[token], token))
    for token in (*ranked, *range(size)):
        if len(chosen) >= size:
            break
        chosen.setdefault(token)
    return torch.tensor(sorted(chosen))
