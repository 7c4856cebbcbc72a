"""A head at work: committed pairs come from the target's features, drafted ones from the head."""

import torch
from torch import Tensor
from torch.nn import functional

from draftmesh.registry.contracts.draft import Step
from draftmesh.registry.contracts.target import Target
from draftmesh.stages.draft.eagle.head import Entry, Head
from draftmesh.stages.draft.eagle.keys import HeadCache
from draftmesh.stages.draft.tree.frontier import Frontier
from draftmesh.stages.draft.vocabulary import whole_vocabulary
from draftmesh.stages.model.masks import ancestors


class HeadRunner:
    """Runs a head for one batch.

    The pair of position i is (embedding of token i + 1, the target's features at i). `observe`
    writes the pairs of everything the target has processed, so key/values that came from the head's
    own guesses never stay (they cost 8-15 % of the acceptance, vllm#14649).
    """

    def __init__(self, head: Head, target: Target, rows: int, capacity: int) -> None:
        self.head, self.target = head, target
        self.cache = HeadCache(head.config, rows, capacity, head.like)
        self.output = head.like.new_zeros(rows, 1, head.config.hidden)
        self.fed = self.output

    def observe(self, step: Step) -> None:
        """Write the pairs of a step and keep the output at each row's last one."""
        counts = step.lengths
        steps = torch.arange(step.tokens.shape[1], device=counts.device)
        following = functional.pad(step.tokens[:, 1:], (0, 1))
        following = torch.where(steps == counts[:, None] - 1, step.next[:, None], following)
        features = torch.cat([step.features[i] for i in self.head.config.capture], -1)
        hidden = self.head.fuse(features.to(self.output.dtype))
        embedding = self._embed(following)
        positions = self.cache.lengths[:, None] + steps
        last = counts[:, None] - 1
        seen = self.cache.lengths + counts
        output = self._run(embedding, hidden, positions, last, seen, 0)
        self.cache.advance(counts)
        self.output = output

    def follow(self, output: Tensor, tokens: Tensor, depth: int) -> Tensor:
        """The output [B, 1, H] after drafting tokens [B] as the depth-th of the chain (from 1)."""
        embedding = self._embed(tokens[:, None])
        positions = (self.cache.lengths + depth - 1)[:, None]
        last = torch.zeros_like(positions)
        seen = self.cache.lengths + depth
        hidden = self.head.feedback(output)
        return self._run(embedding, hidden, positions, last, seen, depth - 1)

    def expand(self, frontier: Frontier) -> Tensor:
        """Run a tree's next nodes; the outputs [B, M, H] of those that get children.

        A node's pair is its token with its parent's output. `begin` comes before the first level.
        """
        embedding = self._embed(frontier.tokens)
        parents = frontier.parents[:, frontier.offset :] + 1
        hidden = self.fed.gather(1, parents[..., None].expand(-1, -1, self.fed.shape[-1]))
        related = ancestors(frontier.parents)[:, frontier.offset :]
        positions = self.cache.lengths[:, None] + related.sum(-1) - 1
        entry = self.head.enter(embedding, hidden)
        queries = self._write(entry, positions, frontier.offset)
        heads = self.cache.attend_tree(queries, related)
        output = self.head.midlayer.finish(entry.residual, heads)
        self.fed = torch.cat([self.fed, self.head.feedback(output)], 1)
        return output[:, frontier.expand]

    def begin(self) -> None:
        """Start a new tree."""
        self.fed = self.head.feedback(self.output)

    def logits(self, output: Tensor) -> Tensor:
        """output [B, M, H] -> logits [B, M, V] over the target's vocabulary; -inf outside the
        head's."""
        normed = self.head.normed(output)
        config = self.head.config
        if config.version == 1 and not config.own_lm_head:
            return self.target.lm_head(normed.to(self.target.dtype))
        logits: Tensor = self.head.lm_head(normed)
        if not config.reduced:
            return logits
        return whole_vocabulary(logits, self.head.target_ids, config.vocab)

    def _embed(self, tokens: Tensor) -> Tensor:
        """tokens [...] -> [..., H] by the head's own table, or else the target's."""
        own = self.head.config.own_embedding
        table: Tensor = self.head.embed_tokens(tokens) if own else self.target.embed(tokens)
        return table.to(self.output.dtype)

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
        entry = self.head.enter(embedding, hidden)
        queries = self._write(entry, positions, offset, last)
        residual = entry.residual.gather(1, last[..., None].expand(-1, -1, hidden.shape[-1]))
        return self.head.midlayer.finish(residual, self.cache.attend(queries, seen))

    def _write(
        self, entry: Entry, positions: Tensor, offset: int, last: Tensor | None = None
    ) -> Tensor:
        """Keys and values behind each row's length plus offset; the queries, all or at last."""
        attention, dtype = self.head.midlayer.self_attn, entry.attend.dtype
        rotation = self.head.rotation(positions, dtype)
        keys, values = attention.keys_values(entry.attend, rotation)
        self.cache.write(keys, values, offset)
        if last is None or positions.shape[1] == 1:
            return attention.queries(entry.attend, rotation)
        at_last = entry.attend.gather(1, last[..., None].expand(-1, -1, entry.attend.shape[-1]))
        place = self.head.rotation(positions.gather(1, last), dtype)
        return attention.queries(at_last, place)

    def select(self, rows: Tensor) -> None:
        """Keep only rows [B'], in that order."""
        self.cache.select(rows)
        self.output = self.output[rows]
