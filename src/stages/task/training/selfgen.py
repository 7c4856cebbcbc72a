"""Chats written by the target: its answers, and on request its prompts, in a resumable file."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from draftmesh.registry import UserError
from draftmesh.registry.contracts.request import Completion, Request
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.data.encode import encode_turns
from draftmesh.stages.data.selfgen import SelfGen

MARK = "\u241f"
"""Stands for the user's text in the chat template; no tokenizer's template has it."""

SHORTEST = 3


def write_chats(pipeline: Pipeline, folder: Path) -> Path:
    """folder/chats.jsonl, completed if an earlier run was stopped: one answered prompt a line.

    Raises UserError for a model that is to write the prompts, too, and cannot.
    """
    config = SelfGen.Config(**pipeline.cfg["data"])
    folder.mkdir(parents=True, exist_ok=True)
    requests = pipeline.requests() if config.path else _own_prompts(pipeline, config, folder)
    path = folder / "chats.jsonl"
    known = {record["index"] for record in _records(path)}
    drawn = _drawn(requests, config.sampled, int(pipeline.cfg["seed"]))
    for temperature, chosen in (
        (0.0, [r for r in requests if r.index not in drawn]),
        (config.temperature, [r for r in requests if r.index in drawn]),
    ):
        waiting = [request for request in chosen if request.index not in known]
        _complete(pipeline, waiting, temperature, path)
    return path


def _drawn(requests: Sequence[Request], share: float, seed: int) -> set[int]:
    """The requests whose answers are sampled."""
    indices = [request.index for request in requests]
    return set(random.Random(seed).sample(indices, round(share * len(indices))))


def _own_prompts(pipeline: Pipeline, config: SelfGen.Config, folder: Path) -> list[Request]:
    """What the target says in the user's place, each text once."""
    checkpoint = pipeline.checkpoint
    if not getattr(checkpoint.tokenizer, "chat_template", None):
        raise UserError(
            f"model {checkpoint.name} has no chat template to write prompts with: "
            "give data.path=<file of prompts>"
        )
    path = folder / "prompts.jsonl"
    known = {record["index"] for record in _records(path)}
    starts = config.starts or [""]
    begun = [_begin(pipeline, starts[i % len(starts)], i, config) for i in range(config.count)]
    _complete(pipeline, [r for r in begun if r.index not in known], 1.0, path)
    texts: dict[str, dict[str, Any]] = {}
    for record in sorted(_records(path), key=lambda record: record["index"]):
        text = (record["prompt"] + record["response"]).strip()
        if record["finish"] == "stop" and record["tokens"] >= SHORTEST:
            texts.setdefault(text, record)
    if not texts:
        raise UserError(
            f"data.count={config.count}: the model ended none of its prompts within "
            f"data.prompt_tokens={config.prompt_tokens}; raise them or give data.path"
        )
    return [_ask(pipeline, text, record) for text, record in texts.items()]


def _begin(pipeline: Pipeline, start: str, index: int, config: SelfGen.Config) -> Request:
    """A request whose completion is a user's turn that begins with `start`."""
    tokenizer = pipeline.checkpoint.tokenizer
    whole = tokenizer.apply_chat_template(
        [{"role": "user", "content": MARK}], tokenize=False, add_generation_prompt=True
    )
    opened = whole[: whole.index(MARK)] + start
    ids = tuple(tokenizer(opened, add_special_tokens=False).input_ids)
    seed = int(pipeline.cfg["seed"])
    return Request(str(index), start, ids, index, seed, config.prompt_tokens, category="chat")


def _ask(pipeline: Pipeline, text: str, record: dict[str, Any]) -> Request:
    ids = encode_turns(pipeline.checkpoint, [text], pipeline.target.context, str(record["index"]))
    cfg = pipeline.cfg
    return Request(
        str(record["index"]),
        text,
        ids,
        record["index"],
        int(cfg["seed"]),
        int(cfg["max_new_tokens"]),
        category=record["style"],
    )


def _complete(
    pipeline: Pipeline, requests: Sequence[Request], temperature: float, path: Path
) -> None:
    """Append a line per completion as soon as it is final; prompts of like length together."""
    if not requests:
        return
    chosen = pipeline.variant(sampling={"temperature": temperature})
    order = sorted(requests, key=lambda request: len(request.token_ids))
    with path.open("a", encoding="utf-8") as file:

        def write(completion: Completion) -> None:
            file.write(json.dumps(_line(completion, temperature), ensure_ascii=False) + "\n")
            file.flush()

        chosen.generate(chosen.plain, [replace(request, stop=()) for request in order], write)


def _line(completion: Completion, temperature: float) -> dict[str, Any]:
    request = completion.request
    return {
        "index": request.index,
        "style": request.category or "chat",
        "prompt": request.prompt,
        "response": completion.text,
        "temperature": temperature,
        "finish": completion.finish_reason,
        "tokens": len(completion.token_ids),
    }


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """The file's whole lines; a last one that was cut off by a kill is taken away."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        path.write_bytes(whole)
    for line in whole.splitlines():
        yield cast(dict[str, Any], json.loads(line))
