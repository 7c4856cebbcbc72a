"""A head at work: committed pairs come from the target's features, drafted ones from the head."""

import torch
from torch import Tensor
from torch.nn import functional

from draftmesh.registry.contracts.draft import Step
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.eagle.head import Head
from draftmesh.stages.draft.eagle.keys import HeadCache


class HeadRunner:
    """Runs a head for one batch.

    The pair of position i is (embedding of token i + 1, the target's features at i). `observe`
    writes the pairs of everything the target has processed, so key/values that came from the head's
    own guesses never stay (they cost 8-15 % of the acceptance, vllm#14649).
    """

    def __init__(self, head: Head, target: Target, rows: int, capacity: int) -> None:
        self.head, self.target = head, target
        weight = head.fc.weight
        self.cache = HeadCache(head.config, rows, capacity, weight)
        self.output = weight.new_zeros(rows, 1, head.config.hidden)

    def observe(self, step: Step) -> None:
        """Write the pairs of a step and keep the output at each row's last one."""
        counts = step.lengths
        steps = torch.arange(step.tokens.shape[1], device=counts.device)
        following = functional.pad(step.tokens[:, 1:], (0, 1))
        following = torch.where(steps == counts[:, None] - 1, step.next[:, None], following)
        features = torch.cat([step.features[i] for i in self.head.config.capture], -1)
        hidden = self.head.fuse(features.to(self.output.dtype))
        embedding = self.target.embed(following).to(hidden.dtype)
        positions = self.cache.lengths[:, None] + steps
        last = counts[:, None] - 1
        seen = self.cache.lengths + counts
        output = self._run(embedding, hidden, positions, last, seen, 0)
        self.cache.advance(counts)
        self.output = output

    def follow(self, output: Tensor, tokens: Tensor, depth: int) -> Tensor:
        """The output [B, 1, H] after drafting tokens [B] as the depth-th of the chain (from 1)."""
        embedding = self.target.embed(tokens[:, None]).to(output.dtype)
        positions = (self.cache.lengths + depth - 1)[:, None]
        last = torch.zeros_like(positions)
        seen = self.cache.lengths + depth
        hidden = self.head.feedback(output)
        return self._run(embedding, hidden, positions, last, seen, depth - 1)

    def logits(self, output: Tensor) -> Tensor:
        """Logits [B, V] over the target's vocabulary; -inf outside the head's."""
        normed = self.head.normed(output[:, 0])
        if self.head.config.version == 1:
            return self.target.lm_head(normed.to(self.target.dtype))
        logits = self.head.lm_head(normed)
        if not self.head.config.reduced:
            return logits
        full = logits.new_full((len(logits), self.head.config.vocab), -torch.inf)
        full[:, self.head.target_ids] = logits
        return full

    def _run(
        self,
        embedding: Tensor,
        hidden: Tensor,
        positions: Tensor,
        last: Tensor,
        seen: Tensor,
        offset: int,
    ) -> Tensor:
        """Write T pairs behind each row's length plus offset; the output [B, 1, H] at last."""
        layer, entry = self.head.midlayer, self.head.enter(embedding, hidden)
        keys, values = layer.self_attn.keys_values(
            entry.attend, self.head.rotation(positions, hidden.dtype)
        )
        self.cache.write(keys, values, offset)
        attend, residual, place = entry.attend, entry.residual, positions
        if attend.shape[1] > 1:
            attend = attend.gather(1, last[..., None].expand(-1, -1, attend.shape[-1]))
            residual = residual.gather(1, last[..., None].expand(-1, -1, residual.shape[-1]))
            place = positions.gather(1, last)
        queries = layer.self_attn.queries(attend, self.head.rotation(place, hidden.dtype))
        return layer.finish(residual, self.cache.attend(queries, seen))

    def select(self, rows: Tensor) -> None:
        """Keep only rows [B'], in that order."""
        self.cache.select(rows)
        self.output = self.output[rows]
