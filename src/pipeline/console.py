"""What a run shows on standard output: each completion, then a table."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from draftmesh.pipeline.results import Results
from draftmesh.pipeline.summary import rows
from draftmesh.registry.contracts.request import Completion
from draftmesh.stages.task.records.console import shorten

DRAFTED = "green"
_PROMPT_LENGTH = 200


def show_completion(
    console: Console, completion: Completion, pieces: Sequence[str] | None = None
) -> None:
    """Print a prompt and what became of it; on a terminal, drafted tokens are coloured."""
    request = completion.request
    name = f"{request.id} (turn {request.turn + 1})" if request.turn else request.id
    if console.is_terminal:
        console.print(Rule(Text(name), style="dim", align="left"))
    console.print(Text(f"> {shorten(request.prompt, _PROMPT_LENGTH)}", "dim"))
    console.print(completion_text(completion, pieces if console.is_terminal else None))
    console.print(Text(_outcome(completion), "dim"))
    console.print()


def completion_text(completion: Completion, pieces: Sequence[str] | None) -> Text:
    """The completion, token by token when `pieces` (aligned with its tokens) are given.

    The text can end before the tokens do: special tokens and a stop string are not in it.
    """
    left, text = completion.text, Text()
    for piece, drafted in zip(pieces or (), completion.drafted, strict=False):
        if not left.startswith(piece) and not piece.startswith(left):
            return Text(completion.text)
        text.append(piece[: len(left)], DRAFTED if drafted else None)
        left = left[len(piece) :]
    return text if not left else Text(completion.text)


def show_summary(console: Console, title: str, results: Results, where: str | None = None) -> None:
    """Print the table of results, and where the run is stored."""
    table = Table(
        title=title,
        title_justify="left",
        box=None,
        show_header=False,
        pad_edge=False,
        min_width=min(cell_len(title), console.width),
    )
    if console.is_terminal:
        table.title_style = "bold"
    table.add_column(style="bold" if console.is_terminal else None, no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim" if console.is_terminal else None)
    for row in rows(results):
        table.add_row(row.label, row.value, row.note)
    console.print(table)
    if console.is_terminal and results.get("accepted_tokens"):
        console.print(Text.assemble("Tokens in ", ("this colour", DRAFTED), " were drafted."))
    if where is not None:
        console.print(Text(f"Recorded as {where}"), soft_wrap=True)


def _outcome(completion: Completion) -> str:
    tokens, steps = len(completion.token_ids), len(completion.accept_lengths)
    ended = {
        "stop": "the model ended it",
        "length": "length limit",
        "stop_string": "stop string",
    }[completion.finish_reason]
    return f"  {tokens} tokens in {steps} steps; {ended}"
