from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from draftmesh.pipeline.report import report, write_report
from draftmesh.pipeline.results import results_of
from draftmesh.registry.contracts.result import RunResult
from draftmesh.stages.task.records.charts import Bar, Share, bar_chart, heat_map, share_bar

CFG: dict[str, Any] = {"model": {"name": "tiny"}, "draft": {"name": "ngram"}, "prompt": "<x> ${5"}


class Page(HTMLParser):
    """Collects elements and texts, and checks that every element is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str, css: str | None = None) -> list[dict[str, str | None]]:
        return [a for t, a in self.elements if t == tag and (css is None or a.get("class") == css)]


def page(result: RunResult) -> Page:
    return Page(report("a & b", result, results_of(result, {}), CFG, {"cpu": "C", "cores": 2}))


def test_every_token_is_marked(result: RunResult) -> None:
    found = page(result)
    assert result.generation is not None
    completions = result.generation.completions
    tokens = [a for a in found.all("i") if a.get("title")]
    assert len(tokens) == sum(len(c.token_ids) for c in completions)
    marked = [a.get("class") == "d" for a in tokens]
    assert marked == [mark for c in completions for mark in c.drafted]
    assert tokens[0]["title"] == "id 100, prefill"
    assert tokens[1]["title"] == "id 101, step 1"
    assert tokens[3]["title"] == "id 103, step 2"


def test_the_page_needs_nothing_else(result: RunResult) -> None:
    found = page(replace(result, expert_load=[[1, 2], [3, 4]]))
    assert found.all("link") == found.all("script") == found.all("img") == []
    assert len(found.all("svg")) == 4
    assert len(found.all("rect", "cell")) == 4
    assert "prefers-color-scheme: dark" in "".join(found.texts)


def test_text_cannot_break_the_page(result: RunResult) -> None:
    assert result.generation is not None
    completion = result.generation.completions[0]
    hostile = '</div><script>alert("x")</script>'
    completion.text = hostile
    pieces = [[hostile] * len(completion.token_ids), *result.pieces[1:]]
    found = page(replace(result, pieces=pieces))
    assert found.all("script") == []
    without_pieces = page(replace(result, pieces=[]))
    assert hostile in without_pieces.texts


def test_many_samples_are_folded(result: RunResult) -> None:
    assert result.generation is not None
    generation = result.generation
    many = replace(
        result, generation=replace(generation, completions=generation.completions * 10), pieces=[]
    )
    found = page(many)
    assert len(found.all("article")) == 20
    assert "8 more" in found.texts


def test_a_run_without_completions_has_a_page_too(tmp_path: Path) -> None:
    trained = RunResult(metrics={"val_loss": 1.5})
    write_report(tmp_path, "train", trained, results_of(trained, {}), CFG, {})
    assert "val_loss" in Page((tmp_path / "report.html").read_text()).texts


def test_bars_are_as_high_as_their_share() -> None:
    found = Page(bar_chart([Bar("1", 1.0, "all", ""), Bar("2", 0.25, "some", "")], "x"))
    full, quarter = (float(a["height"] or 0) for a in found.all("rect"))
    assert quarter == full / 4


def test_shares_fill_the_bar() -> None:
    found = Page(
        share_bar([Share("a", "draft", 0.25, "1 s"), Share("b", "verify", 0.75, "3 s")], "")
    )
    widths = [float(a["width"] or 0) for a in found.all("rect")]
    assert widths == [240.0, 720.0]


def test_a_balanced_layer_is_evenly_shaded() -> None:
    found = Page(heat_map([[2, 2], [0, 4], [0, 0]], "layer", "expert"))
    shades = [a.get("fill-opacity") for a in found.all("rect")]
    assert shades == ["0.530", "0.530", "0.060", None, "0.060", "0.060"]
