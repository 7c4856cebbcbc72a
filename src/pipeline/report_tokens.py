"""Completions as HTML, every token marked as drafted or from the target."""

from collections.abc import Sequence
from html import escape

from draftmesh.registry.contracts.request import Completion

OPEN_SAMPLES = 12

LEGEND = (
    '<p class="legend"><span><i class="swatch d"></i>drafted and accepted</span>'
    '<span><i class="swatch t"></i>chosen by the target model</span>'
    "<span>pointing at a token shows its id and its step</span></p>"
)


def samples(completions: Sequence[Completion], pieces: Sequence[Sequence[str]]) -> str:
    """All samples; those after the first dozen are folded."""
    blocks = [
        sample(completion, pieces[index] if index < len(pieces) else ())
        for index, completion in enumerate(completions)
    ]
    shown, folded = "".join(blocks[:OPEN_SAMPLES]), "".join(blocks[OPEN_SAMPLES:])
    if not folded:
        return LEGEND + shown
    more = len(blocks) - OPEN_SAMPLES
    return f"{LEGEND}{shown}<details><summary>{more} more</summary>{folded}</details>"


def sample(completion: Completion, pieces: Sequence[str]) -> str:
    """One prompt and its completion."""
    request = completion.request
    turn = f", turn {request.turn + 1}" if request.turn else ""
    category = f" &middot; {escape(request.category)}" if request.category else ""
    tokens, steps = len(completion.token_ids), len(completion.accept_lengths)
    drafted = sum(completion.drafted)
    meta = (
        f"{tokens} tokens in {steps} steps, {drafted} of them drafted; "
        f"ended by {completion.finish_reason}{category}"
    )
    aligned = bool(pieces) and len(pieces) == tokens
    text = tokens_html(completion, pieces) if aligned else escape(completion.text)
    return (
        f'<article class="card sample"><h3>{escape(request.id)}{turn}</h3>'
        f'<div class="prompt">{escape(request.prompt)}</div><div class="tokens">{text}</div>'
        f'<p class="meta">{meta}</p></article>'
    )


def tokens_html(completion: Completion, pieces: Sequence[str]) -> str:
    """The tokens as elements: class d marks the drafted ones."""
    steps = [step for step, n in enumerate(completion.accept_lengths) for _ in range(n)]
    lines = zip(completion.token_ids, completion.drafted, pieces, steps, strict=True)
    return "".join(_token(*line) for line in lines)


def _token(token_id: int, drafted: bool, piece: str, step: int) -> str:
    if not piece:  # part of a character that a later token completes
        return ""
    css = ' class="d"' if drafted else ""
    where = f"step {step}" if step else "prefill"
    shown = escape(piece).replace("\n", "<s>&crarr;</s>\n")
    return f'<i{css} title="id {token_id}, {where}">{shown}</i>'
