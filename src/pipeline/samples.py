"""samples.jsonl: one line per prompt and turn."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from draftmesh.registry.contracts.request import Completion
from draftmesh.stages.task.records.files import SAMPLES, encode, unwritable, write_text


def sample(completion: Completion) -> dict[str, Any]:
    """A completion as a record.

    `accept_lengths` holds the tokens emitted per step, the prefill step first; their sum is the
    number of tokens. `drafted` says of each token whether a draft proposed it.
    """
    request = completion.request
    record = {
        "id": request.id,
        "prompt": request.prompt,
        "text": completion.text,
        "token_ids": completion.token_ids,
        "prompt_tokens": len(request.token_ids),
        "finish_reason": completion.finish_reason,
        "accept_lengths": completion.accept_lengths,
        "steps": len(completion.accept_lengths),
        "turn": request.turn,
        "drafted": completion.drafted,
    }
    return record if request.category is None else {**record, "category": request.category}


class SampleLog:
    """Appends each completion as soon as it is final, so that a later failure loses none.

    Several processes may append to the same file: a line is one write to a file opened for append.
    """

    def __init__(self, run_dir: Path) -> None:
        self.path = run_dir / SAMPLES

    def append(self, completion: Completion) -> None:
        """Add a line; raises UserError when the folder cannot be written."""
        line = encode(_line(completion))
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                written = os.write(handle, line)
                while written < len(line):
                    written += os.write(handle, line[written:])
            finally:
                os.close(handle)
        except OSError as error:
            raise unwritable(self.path, error) from error


def write_samples(run_dir: Path, completions: Sequence[Completion]) -> None:
    """Replace what was appended in the order of finishing by all samples in prompt order."""
    write_text(run_dir / SAMPLES, "".join(_line(c) for c in completions))


def _line(completion: Completion) -> str:
    return json.dumps(sample(completion), ensure_ascii=False) + "\n"
