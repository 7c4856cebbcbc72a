"""The verdict over all parts."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from draftmesh.registry.contracts.tracking import Scalar
from draftmesh.stages.task.certify.part import Part

Verdict = Literal["lossless", "lossy", "incomplete", "failed"]
WITHOUT_THE_MODEL = "exact"
"""The part that looks at the verifier only."""


@dataclass(frozen=True)
class Certificate:
    """parts in the order they were done; `claim` says that the stages claim to be lossless."""

    parts: Sequence[Part]
    claim: bool

    @property
    def broken(self) -> list[Part]:
        """The parts that do not agree with plain decoding."""
        return [part for part in self.parts if part.holds is False]

    @property
    def complete(self) -> bool:
        """Whether decoding with the model was found to agree, in any of the ways."""
        return any(part.holds for part in self.parts if part.name != WITHOUT_THE_MODEL)

    @property
    def verdict(self) -> Verdict:
        """What lossy stages do is no failure."""
        if not self.claim:
            return "lossy"
        if self.broken:
            return "failed"
        return "lossless" if self.complete else "incomplete"

    @property
    def line(self) -> str:
        """The verdict in one line."""
        if self.verdict == "failed":
            return "failed: " + "; ".join(part.summary for part in self.broken)
        shown = self.broken or [part for part in self.parts if part.holds]
        findings = "; ".join(part.summary for part in shown) or "nothing was checked"
        if self.verdict == "lossy" and not self.broken:
            return f"lossy: by its verifier, but nothing diverged here ({findings})"
        if self.verdict == "incomplete":
            return f"incomplete: decoding with the model could not be checked ({findings})"
        return f"{self.verdict}: {findings}"

    @property
    def notes(self) -> list[str]:
        """What was left out or made smaller."""
        return [f"{part.title}: {note}" for part in self.parts for note in part.notes]

    def document(self, **facts: Any) -> dict[str, Any]:
        """certificate.json."""
        return {
            "verdict": self.verdict,
            "line": self.line,
            **facts,
            "parts": [_record(part) for part in self.parts],
        }

    def metrics(self) -> dict[str, Scalar]:
        """Flat results: those of each part by its name, and the labels."""
        found: dict[str, Scalar] = {}
        for part in self.parts:
            found |= part.metrics
        checked = "checked" if self.complete else "unchecked"
        found["exactness"] = "diverged" if self.broken else checked
        found["certificate"] = self.line
        return found


def _record(part: Part) -> dict[str, Any]:
    record = asdict(part)
    del record["metrics"]
    return record
