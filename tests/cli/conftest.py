import logging
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig

from draftmesh.cli import app


@dataclass
class Call:
    code: int
    out: str
    err: str


@dataclass
class Pipeline:
    """Stands in for `draftmesh.pipeline.run`: records what it is given and does as told."""

    calls: list[tuple[dict, Path | None]] = field(default_factory=list)
    choices: dict[str, str] = field(default_factory=dict)
    outcome: object = 0

    def run(
        self,
        cfg: dict,
        run_dir: Path | None,
        choices: dict[str, str],
        multirun: Path | None = None,
    ) -> int:
        self.choices = choices
        if run_dir is not None:
            (run_dir / "results.json").write_text("{}")
        self.calls.append((cfg, run_dir))
        outcome = self.outcome(cfg, run_dir) if callable(self.outcome) else self.outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    stand_in = Pipeline()
    module = ModuleType("draftmesh.pipeline.run")
    module.run = stand_in.run
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return stand_in


@pytest.fixture
def call(monkeypatch, tmp_path, capsys, pipeline):
    """Run the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("HYDRA_FULL_ERROR", app.SWEEP_DIR):
        monkeypatch.delenv(name, raising=False)
    caught = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    modules = set(sys.modules)

    def start(*arguments: str) -> Call:
        GlobalHydra.instance().clear()
        os.environ.pop(app.SWEEP_DIR, None)
        monkeypatch.setattr(sys, "argv", ["run.py", *arguments])
        try:
            code = app.start()
        except SystemExit as exit:
            code = exit.code
        captured = capsys.readouterr()
        return Call(code, captured.out, captured.err)

    store = ConfigStore.instance()
    repo = dict(store.repo)
    yield start
    store.repo = repo
    for number, handler in caught.items():
        signal.signal(number, handler)
    root.handlers[:], root.level = handlers, level
    GlobalHydra.instance().clear()
    HydraConfig.instance().cfg = None
    for name in set(sys.modules) - modules:
        if name.startswith("local_"):
            del sys.modules[name]
