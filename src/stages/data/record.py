"""One line of a prompt file, in any of the known formats."""

from collections.abc import Mapping
from typing import Any

from draftmesh.registry.contracts.stage import Prompt
from draftmesh.registry.errors import UserError

_ROLES = ("system", "user", "assistant")


def to_prompt(record: Any, where: str, number: int) -> Prompt:
    """A prompt from a decoded JSON line; `where` is named in errors, `number` is the default id.

    Formats: {"turns": [text, ...]} (Spec-Bench, MT-bench), {"prompt": text} and {"messages":
    [{"role", "content"}, ...]}, whose last user message is the turn and whose answer to it, if any,
    is left out; each with optional id or question_id, category, max_new_tokens.
    """
    if not isinstance(record, Mapping):
        raise UserError(f"{where} is no JSON object: mend it or change data.path")
    history: tuple[tuple[str, str], ...] = ()
    if "turns" in record:
        turns = _texts(record["turns"], f"{where}: turns")
    elif "prompt" in record:
        turns = _texts([record["prompt"]], f"{where}: prompt")
    elif "messages" in record:
        history, turns = _conversation(record["messages"], f"{where}: messages")
    else:
        keys = ", ".join(map(str, record)) or "nothing"
        raise UserError(
            f"{where} has {keys}, but no turns, prompt or messages: mend it or change data.path"
        )
    return Prompt(
        id=str(record.get("question_id", record.get("id", number))),
        turns=turns,
        category=_category(record),
        max_new_tokens=_limit(record, where),
        history=history,
    )


def _texts(value: Any, what: str) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise UserError(f"{what} must be non-empty text: mend it or change data.path")
    return tuple(texts)


def _conversation(value: Any, what: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The messages before the last one of the user, and that one."""
    messages = value if isinstance(value, list) else []
    pairs = [_message(message, what) for message in messages]
    last = max((i for i, (role, _) in enumerate(pairs) if role == "user"), default=None)
    if last is None:
        raise UserError(f"{what} has no message of the user: mend it or change data.path")
    return tuple(pairs[:last]), _texts(pairs[last][1], what)


def _message(message: Any, what: str) -> tuple[str, str]:
    role = message.get("role") if isinstance(message, Mapping) else None
    content = message.get("content") if isinstance(message, Mapping) else None
    if role not in _ROLES or not isinstance(content, str):
        raise UserError(
            f"{what} must be a list of role ({', '.join(_ROLES)}) and content (text): "
            "mend it or change data.path"
        )
    return role, content


def _category(record: Mapping[str, Any]) -> str | None:
    category = record.get("category")
    return None if category is None else str(category)


def _limit(record: Mapping[str, Any], where: str) -> int | None:
    limit = record.get("max_new_tokens")
    if limit is None:
        return None
    if type(limit) is not int or limit < 1:
        raise UserError(f"{where}: max_new_tokens must be a whole number above 0")
    return limit
