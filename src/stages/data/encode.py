"""From a conversation to the token ids that a completion follows."""

from collections.abc import Sequence

from jinja2 import TemplateError

from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.registry.errors import UserError

Message = tuple[str, str]
"""(role, content)"""


def encode_turns(
    checkpoint: Checkpoint,
    turns: Sequence[str],
    context: int,
    prompt_id: str,
    replies: Sequence[str] = (),
    history: Sequence[Message] = (),
) -> tuple[int, ...]:
    """Token ids of `history`, then the user's turns with a reply between each and the next.

    With a chat template the ids end where the assistant begins to speak. Without one the contents
    are joined by blank lines and encoded as the tokenizer does by default.
    Raises UserError, naming the prompt, when it is empty or leaves no room in `context` tokens.
    """
    assert len(replies) == len(turns) - 1, "a reply follows every turn but the last"
    messages = list(history)
    for turn, reply in zip(turns, replies, strict=False):
        messages += [("user", turn), ("assistant", reply)]
    ids = _encode(checkpoint, [*messages, ("user", turns[-1])], prompt_id)
    if not ids:
        raise UserError(f"prompt {prompt_id} is empty: give it text (prompt or data.path)")
    if len(ids) >= context:
        raise UserError(
            f"prompt {prompt_id} has {len(ids)} tokens, which leaves no room in the model's "
            f"context of {context}: shorten it (prompt or data.path)"
        )
    return ids


def _encode(checkpoint: Checkpoint, messages: list[Message], prompt_id: str) -> tuple[int, ...]:
    tokenizer = checkpoint.tokenizer
    if tokenizer is None:
        raise UserError(f"model {checkpoint.name} has no tokenizer: add one to model.path")
    if not tokenizer.chat_template:
        return tuple(tokenizer("\n\n".join(content for _, content in messages))["input_ids"])
    spoken = [{"role": role, "content": content} for role, content in messages]
    try:
        ids = tokenizer.apply_chat_template(spoken, add_generation_prompt=True, return_dict=False)
    except TemplateError as error:
        raise UserError(
            f"prompt {prompt_id} does not fit the model's chat template ({error}): change data.path"
        ) from error
    return tuple(ids)
