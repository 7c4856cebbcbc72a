"""From prompts to requests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.registry.contracts.stage import Checkpoint, Prompt
from draftmesh.stages.data.encode import encode_turns


@dataclass(frozen=True)
class RequestOptions:
    """The options of a run that every request shares."""

    max_new_tokens: int
    stop: tuple[str, ...]
    seed: int


def requests_of(
    prompts: Sequence[Prompt], checkpoint: Checkpoint, context: int, options: RequestOptions
) -> list[Request]:
    """One request per prompt (its first turn), encoded with the chat template if there is one.

    Raises UserError for a prompt that is empty or leaves no room in the context.
    """
    requests = []
    for index, prompt in enumerate(prompts):
        token_ids = encode_turns(
            checkpoint, prompt.turns[:1], context, prompt.id, history=prompt.history
        )
        requests.append(
            Request(
                id=prompt.id,
                prompt=prompt.turns[0],
                token_ids=tuple(token_ids),
                index=index,
                seed=options.seed,
                max_new_tokens=prompt.max_new_tokens or options.max_new_tokens,
                stop=options.stop,
                category=prompt.category,
                later=prompt.turns[1:],
                history=prompt.history,
            )
        )
    return requests


def next_turn(completion: Completion, checkpoint: Checkpoint, context: int) -> Request:
    """The user's next turn, after the reply to the last one. Raises UserError as above."""
    last = completion.request
    said = (("user", last.prompt), ("assistant", completion.text))
    history, (turn, *later) = (*last.history, *said), last.later
    token_ids = encode_turns(checkpoint, [turn], context, last.id, history=history)
    return replace(
        last,
        prompt=turn,
        token_ids=token_ids,
        turn=last.turn + 1,
        later=tuple(later),
        history=history,
    )
