"""task=generate: complete the prompts, and on request plain decoding of them beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from draftmesh.registry import register
from draftmesh.registry.contracts.engine import Engine
from draftmesh.registry.contracts.request import Request
from draftmesh.registry.contracts.result import RunResult
from draftmesh.registry.contracts.task import Pipeline
from draftmesh.stages.task.pieces import completion_pieces

WARM_UP_TOKENS = 4


@register("task", "generate")
class Generate:
    """The main job."""

    @dataclass(frozen=True)
    class Config:
        """baseline: also decode without a draft, for the speed-up and an equality check."""

        name: str = "generate"
        baseline: bool = False

    def __init__(self, config: Config) -> None:
        self.config = config

    def run(self, pipeline: Pipeline) -> RunResult:
        """Complete every prompt after a short warm-up."""
        requests = pipeline.requests()
        warm_up(pipeline, pipeline.engine, requests)
        generation = pipeline.converse(pipeline.engine, requests, pipeline.finished)
        pipeline.keep_meters()
        plain = None
        if self.config.baseline:
            warm_up(pipeline, pipeline.plain, requests)
            plain = pipeline.converse(pipeline.plain, requests)
        return RunResult(
            generation=generation,
            plain=plain,
            comparable=pipeline.comparable,
            tree=pipeline.branching,
            pieces=completion_pieces(pipeline.checkpoint.tokenizer, generation.completions),
        )


def warm_up(pipeline: Pipeline, engine: Engine, requests: Sequence[Request]) -> None:
    """A few tokens of as many prompts as a batch holds, not counted anywhere."""
    some = requests[: pipeline.spec.batch_size * pipeline.ranks.dp]
    pipeline.generate(engine, [replace(r, max_new_tokens=WARM_UP_TOKENS) for r in some])
    pipeline.reset_meters()
