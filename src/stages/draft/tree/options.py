"""The options of drafts that can propose trees, under the names that all of them share."""

from dataclasses import dataclass, field

from draftmesh.registry import UserError

SHAPES = ("chain", "static", "dynamic")
CHILDREN = ("auto", "top", "distinct", "independent")


@dataclass(frozen=True)
class TreeOptions:
    """k: depth, the longest path. shape: chain; static, the same tree every time; or dynamic, grown
    where the draft is sure (EAGLE-2). nodes: most draft tokens in a tree (null: 16, or what widths
    or paths make). top_k: most children of a node; the beams of a dynamic tree.

    A static tree is the likeliest one for k, nodes and top_k, or it is given: by widths, the number
    of children of every node at each depth, as [3,2,1]; or by paths, the rank of the child taken at
    each depth, as [[0],[1],[0,0]].
    children: top takes the likeliest tokens; distinct and independent draw them from q, without and
    with replacement; auto is distinct for the ratio test of a sampled static tree, top otherwise.
    """

    name: str = ""
    k: int = 5
    shape: str = "chain"
    nodes: int | None = None
    top_k: int = 4
    widths: list[int] = field(default_factory=list)
    paths: list[list[int]] = field(default_factory=list)
    children: str = "auto"

    def __post_init__(self) -> None:
        """Raises UserError for a value outside its range, or options that contradict."""
        _one_of("shape", self.shape, SHAPES)
        _one_of("children", self.children, CHILDREN)
        given = [name for name in ("widths", "paths") if getattr(self, name)]
        if len(given) == 2:
            raise UserError("draft.widths and draft.paths exclude each other: give one")
        if given and self.shape != "static":
            raise UserError(f"draft.{given[0]}: describes a static tree: set draft.shape=static")
        if self.shape == "dynamic" and self.children not in ("auto", "top"):
            raise UserError(
                f"draft.children={self.children}: a dynamic tree takes the likeliest tokens: leave "
                "it at auto, or set draft.shape=static"
            )


@dataclass(frozen=True)
class StepwiseOptions(TreeOptions):
    """For drafts that run anew for every token. confidence: a chain ends where the draft's own
    probability of it falls below this."""

    confidence: float = 0.2

    def __post_init__(self) -> None:
        """Raises UserError also for what is no probability to go on from."""
        super().__post_init__()
        if not 0 <= self.confidence < 1:
            raise UserError(f"draft.confidence={self.confidence}: must be from 0 to below 1")


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UserError(f"draft.{option}={value}: must be one of {', '.join(known)}")
