"""One draft after another: the second drafts where the first finds nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from draftmesh.registry import UserError, get, register
from draftmesh.registry.config import merge_config
from draftmesh.registry.contracts.adaptive import Informative, Resizable
from draftmesh.registry.contracts.draft import Draft, Proposal, Rows, Step
from draftmesh.registry.contracts.stage import DraftContext
from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.draft.merge import merge_proposals


@register("draft", "cascade")
class CascadeDraft:
    """Two registered drafts: rows for which `first` proposes nothing are drafted by `second`.

    Both are told every step. A self-speculating draft resumes the target only for a batch that it
    has drafted alone; beside the other's rows its tokens are verified from the first layer on.
    """

    @dataclass(frozen=True)
    class Config:
        """first, second: the name of a draft, or its options as a node with a `name`, for example
        draft.second={name:self,k:4}. k: longest path of either; null leaves it to them."""

        name: str = "cascade"
        first: Any = "ngram"
        second: Any = "self"
        k: int | None = None

        @property
        def drafts(self) -> dict[str, Mapping[str, Any]]:
            """The nodes of both, by option. Raises UserError for what is not a draft's node."""
            return {name: _node(name, getattr(self, name)) for name in ("first", "second")}

    def __init__(self, config: Config, context: DraftContext) -> None:
        self.alone = context.ranks.dp == 1
        self.first, self.second = (
            _build(option, node, context) for option, node in config.drafts.items()
        )
        both = (self.first, self.second)
        self.capture = tuple(sorted({layer for draft in both for layer in draft.capture}))
        deepest = max(draft.depth for draft in both)
        self.limit = self.depth = deepest if config.k is None else min(config.k, deepest)
        branching = any(draft.nodes > draft.depth for draft in both)
        self.nodes = max(self.depth + branching, *(draft.nodes for draft in both))
        self.target_forwards = sum(draft.target_forwards for draft in both)
        self.drafted = {"first": 0, "second": 0}

    def start(self, rows: Rows) -> None:
        """A new batch for both."""
        self.first.start(rows)
        self.second.start(rows)

    def observe(self, step: Step) -> None:
        """Both learn every step, whoever drafted it."""
        self.first.observe(step)
        self.second.observe(step)

    def propose(self, budget: Tensor) -> Proposal:
        """Ask the first for all rows, then the second for those without a proposal."""
        budget = budget.clamp(max=self.limit)
        found = self.first.propose(budget.clamp(max=self.first.depth))
        missing = (budget > 0) & ~found.valid.any(1)
        self.drafted["first"] += int(found.valid.any(1).sum())
        if not bool(missing.any()):
            self._stand_by()
            return found
        rest = budget.clamp(max=self.second.depth) * missing
        other = self.second.propose(rest)
        self.drafted["second"] += int(other.valid.any(1).sum())
        return merge_proposals(found, other, missing)

    def _stand_by(self) -> None:
        """Other ranks wait for the second draft's collectives."""
        if not self.alone:
            self.second.idle()

    def resize(self, depth: int) -> None:
        """Both propose at most `depth` deep."""
        self.limit = min(depth, self.depth)
        for draft in (self.first, self.second):
            if isinstance(draft, Resizable):
                draft.resize(min(depth, draft.depth))
        self.target_forwards = self.first.target_forwards + self.second.target_forwards

    def drop(self, keep: Tensor) -> None:
        """Forget the dropped rows."""
        self.first.drop(keep)
        self.second.drop(keep)

    def idle(self) -> None:
        """The collectives of both."""
        self.first.idle()
        self.second.idle()

    def facts(self) -> dict[str, Scalar]:
        """The first one's share of what was drafted, and what both have to say."""
        facts: dict[str, Scalar] = {}
        for draft in (self.first, self.second):
            if isinstance(draft, Informative):
                facts |= draft.facts()
        total = sum(self.drafted.values())
        return facts | {"cascade_first_share": self.drafted["first"] / total if total else None}


def _node(option: str, value: Any) -> Mapping[str, Any]:
    node = {"name": value} if isinstance(value, str) else value
    if not isinstance(node, Mapping) or not isinstance(node.get("name"), str):
        raise UserError(
            f"draft.{option}: give a draft's name, or a node such as {{name:ngram,k:7}}"
        )
    return node


def _build(option: str, node: Mapping[str, Any], context: DraftContext) -> Draft:
    cls = get("draft", node["name"])
    draft: Draft = cls(merge_config(cls.Config, node, f"draft.{option}."), context)
    return draft
