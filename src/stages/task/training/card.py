"""The model card of a trained head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Facts:
    """What a card tells: the head, the corpus, the work done and the options that differ."""

    title: str
    text: str
    kind: str
    corpus: str
    chats: int
    answer_tokens: int
    seen_tokens: int
    steps: int
    seconds: float
    options: Sequence[str]
    metrics: Mapping[str, float]


def card_text(facts: Facts) -> str:
    """Markdown."""
    command = " ".join(
        [
            f"python run.py task=train draft={facts.kind} data=jsonl data.path=<chats>",
            *facts.options,
        ]
    )
    rates = [f"{facts.metrics[f'val_accept_{j}']:.3f}" for j in range(1, 10) if _has(facts, j)]
    styles = [
        f"| {name.removeprefix('val_acceptance_length_')} | {value:.2f} |"
        for name, value in sorted(facts.metrics.items())
        if name.startswith("val_acceptance_length_")
    ]
    return "\n".join(
        [
            f"# {facts.title}",
            "",
            facts.text,
            "",
            f"- Data: {facts.corpus}, {facts.chats} chats written by the target, "
            f"{facts.answer_tokens:,} answer tokens.",
            f"- Training: {facts.seen_tokens:,} answer tokens seen in {facts.steps:,} steps, "
            f"{facts.seconds / 60:.0f} minutes of wall time.",
            f"- Command: `{command}`",
            "",
            "Greedy acceptance on held-out chats, P(the first j draft tokens are right) at any "
            "place of an answer: "
            + ", ".join(rates)
            + f". Decoding them with chains of {len(rates)} emits "
            f"{facts.metrics['val_acceptance_length']:.2f} tokens a target forward (bonus "
            "included), by style:",
            "",
            "| Held-out chats | Acceptance length |",
            "|---|---|",
            *styles,
            "",
        ]
    )


def _has(facts: Facts, position: int) -> bool:
    return f"val_accept_{position}" in facts.metrics


def write_card(folder: Path, facts: Facts) -> None:
    """README.md in the head's folder."""
    (folder / "README.md").write_text(card_text(facts), encoding="utf-8")
