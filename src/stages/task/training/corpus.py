"""Chats to train on, as token ids."""

import gzip
import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draftmesh.registry.errors import UserError


@dataclass(frozen=True)
class Chat:
    """One conversation: token ids, how many of them are the prompt, and its style for reports."""

    ids: tuple[int, ...]
    prompt: int
    style: str = "chat"
    greedy: bool = False


@dataclass(frozen=True)
class Corpus:
    """Chats and where they come from, as a model card names it."""

    name: str
    chats: list[Chat]


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, json.loads(line)
    except FileNotFoundError:
        raise UserError(f"data.path: no such file: {path}") from None
    except json.JSONDecodeError as error:
        raise UserError(f"data.path: {path}:{number} is not JSON ({error.msg})") from None
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise UserError(f"data.path: {path} cannot be read ({error})") from None


def _messages(row: dict[str, Any], where: str) -> list[dict[str, str]]:
    if isinstance(row.get("messages"), list) and row["messages"]:
        return list(row["messages"])
    if isinstance(row.get("prompt"), str) and isinstance(row.get("response"), str):
        return [
            {"role": "user", "content": row["prompt"]},
            {"role": "assistant", "content": row["response"]},
        ]
    raise UserError(f"data.path: {where} has neither `messages` nor `prompt` and `response`")


def _encode(tokenizer: Any, row: dict[str, Any], where: str, eos: int | None) -> Chat | None:
    if "token_ids" in row:
        prompt, answer = _sample(tokenizer, row, where)
    else:
        messages = _messages(row, where)
        if messages[-1].get("role") != "assistant":
            raise UserError(f"data.path: {where} does not end with the assistant's answer")
        prompt = _encode_prompt(tokenizer, messages[:-1])
        answer = tokenizer(messages[-1]["content"], add_special_tokens=False).input_ids
        if eos is not None and row.get("finish", "stop") == "stop":
            answer = [*answer, eos]
    style = row.get("style", row.get("category")) or "chat"
    known = row.get("prompt_tokens", len(prompt)) == len(prompt)
    greedy = row.get("temperature") == 0
    return Chat(tuple(prompt + answer), len(prompt), str(style), greedy) if known else None


def _encode_prompt(tokenizer: Any, messages: list[dict[str, str]]) -> list[int]:
    if getattr(tokenizer, "chat_template", None):
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return list(tokenizer(text, add_special_tokens=False).input_ids)
    return list(tokenizer("\n".join(m["content"] for m in messages)).input_ids)


def _sample(tokenizer: Any, row: dict[str, Any], where: str) -> tuple[list[int], list[int]]:
    """Prompt and answer of a line of a run's samples.jsonl."""
    prompt, answer = row.get("prompt"), row["token_ids"]
    ids = isinstance(answer, list) and all(isinstance(token, int) for token in answer)
    if not isinstance(prompt, str) or not ids:
        raise UserError(f"data.path: {where} has `token_ids` that are no numbers, or no `prompt`")
    return _encode_prompt(tokenizer, [{"role": "user", "content": prompt}]), answer


def load_corpus(
    path: Path, tokenizer: Any, eos: int | None, limit: int | None = None, longest: int = 2048
) -> list[Chat]:
    """Read a jsonl (or jsonl.gz) of chats.

    Each line has `messages`, or `prompt` and `response`; optional `style`, `temperature`, `finish`
    (anything but "stop" says the answer was cut, so no end token follows it). A run's samples.jsonl
    is read as it is (`prompt`, `token_ids`, `category`), without the lines whose `prompt_tokens`
    tell that more than the prompt came before. Answers longer than `longest` tokens, prompt
    included, are cut; chats whose prompt fills that are left out.
    """
    chats: list[Chat] = []
    for number, row in _lines(path):
        if limit is not None and len(chats) >= limit:
            break
        chat = _encode(tokenizer, row, f"{path}:{number}", eos)
        if chat is not None and 0 < chat.prompt < min(len(chat.ids), longest) - 1:
            chats.append(Chat(chat.ids[:longest], chat.prompt, chat.style, chat.greedy))
    if not chats:
        raise UserError(f"data.path: no usable chat in {path}")
    return chats


def split(chats: list[Chat], fraction: float, seed: int) -> tuple[list[int], list[int]]:
    """Indices of training and held-out chats. Chats with the same prompt tokens stay together."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, chat in enumerate(chats):
        groups.setdefault(chat.ids[: chat.prompt], []).append(index)
    order = sorted(groups)
    random.Random(seed).shuffle(order)
    held: list[int] = []
    for key in order:
        if len(held) >= fraction * len(chats):
            break
        held += groups[key]
    chosen = set(held)
    return [i for i in range(len(chats)) if i not in chosen], sorted(held)


def fingerprint(chats: list[Chat], *more: object) -> str:
    """A digest of the token ids and prompt lengths, and of whatever else."""
    digest = hashlib.sha256(repr(more).encode())
    for chat in chats:
        digest.update(repr((chat.prompt, chat.ids)).encode())
    return digest.hexdigest()
