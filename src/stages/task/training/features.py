"""The target's hidden states for a corpus, computed once and kept on disk.

A head trains on frozen features: the first epoch runs the target and fills the store, later epochs
(and a resumed training) only read it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from draftmesh.registry.contracts.target import Target
from draftmesh.stages.task.training.corpus import Chat, fingerprint
from draftmesh.stages.task.training.identity import model_digest


class FeatureStore:
    """Memory-mapped hidden states [tokens, C, H] in bfloat16 (2*C*H bytes a token), by chat.

    layers: the C hidden states to keep (i < L is the input of layer i, L the output of the final
    norm). `name` is the target's; each target, dtype, corpus and choice of layers has its own
    folder inside `cache`. Several processes may fill one store: each writes whole chats.
    """

    def __init__(
        self, cache: Path, chats: list[Chat], target: Target, layers: Sequence[int], name: str
    ) -> None:
        self.chats, self.target, self.layers = chats, target, tuple(layers)
        self.hidden = target.hidden_size
        self.offsets = np.cumsum([0] + [len(chat.ids) for chat in chats])
        key = fingerprint(chats, model_digest(target.model), str(target.dtype), self.layers)
        folder = cache / f"{name}-{key[:12]}"
        folder.mkdir(parents=True, exist_ok=True)
        shape = (int(self.offsets[-1]), len(self.layers), self.hidden)
        self._features = _open(folder / "features.bin", np.int16, shape)
        self._known = _open(folder / "known.bin", np.uint8, (len(chats),))

    def _span(self, index: int) -> slice:
        return slice(self.offsets[index], self.offsets[index + 1])

    def write(self, index: int, features: Tensor) -> None:
        """Store one chat's features [T, C, H]."""
        packed = features.to(torch.bfloat16).cpu().view(torch.int16)
        self._features[self._span(index)] = packed.numpy()
        self._known[index] = 1

    def read(self, index: int) -> Tensor:
        """One chat's features [T, C, H], bfloat16; `fill` comes first."""
        assert self._known[index]
        return torch.from_numpy(np.array(self._features[self._span(index)])).view(torch.bfloat16)

    def missing(self, indices: Sequence[int]) -> list[int]:
        """Those whose features are not stored yet."""
        return [i for i in indices if not self._known[i]]

    @torch.inference_mode()
    def fill(self, indices: Sequence[int], tokens: int = 1024) -> None:
        """Run the target on what is missing, at most about `tokens` padded tokens at a time."""
        missing = sorted(self.missing(indices), key=lambda i: len(self.chats[i].ids))
        while missing:
            count = max(1, tokens // len(self.chats[missing[-1]].ids))
            batch, missing = missing[-count:], missing[:-count]
            for index, features in zip(batch, self._forward(batch), strict=True):
                self.write(index, features[: len(self.chats[index].ids)])

    def _forward(self, indices: Sequence[int]) -> Tensor:
        """Features [B, T, C, H] of right-padded chats."""
        chats = [self.chats[i] for i in indices]
        ids = torch.zeros(len(chats), max(len(chat.ids) for chat in chats), dtype=torch.long)
        for row, chat in enumerate(chats):
            ids[row, : len(chat.ids)] = torch.tensor(chat.ids)
        lengths = torch.tensor([len(chat.ids) for chat in chats])
        forward = self.target.forward(
            ids.to(self.target.device),
            self.target.new_cache(*ids.shape),
            valid=(torch.arange(ids.shape[1]) < lengths[:, None]).to(self.target.device),
            capture=self.layers,
            logits_at=torch.zeros_like(ids[:, :1]),
        )
        return torch.stack([forward.features[i] for i in self.layers], dim=2)


def _open(path: Path, dtype: Any, shape: tuple[int, ...]) -> np.memmap:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    with path.open("ab") as file:  # keeps what another process has written
        file.truncate(size)
    return np.memmap(path, dtype, "r+", shape=shape)
