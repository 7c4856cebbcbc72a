"""report.html: a run on one page that needs nothing else to be read."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from draftmesh.pipeline.acceptance import positions
from draftmesh.pipeline.report_tokens import samples
from draftmesh.pipeline.results import Results
from draftmesh.pipeline.summary import number, rows, shares
from draftmesh.registry.contracts.counters import Counters
from draftmesh.registry.contracts.result import RunResult
from draftmesh.stages.task.records.charts import Bar, Share, bar_chart, heat_map, share_bar
from draftmesh.stages.task.records.files import write_text
from draftmesh.stages.task.records.page import page


def write_report(
    run_dir: Path,
    name: str,
    result: RunResult,
    results: Results,
    cfg: Mapping[str, Any],
    environment: Mapping[str, Any],
) -> None:
    """Write report.html; raises UserError when the folder cannot be written."""
    write_text(run_dir / "report.html", report(name, result, results, cfg, environment))


def report(
    name: str,
    result: RunResult,
    results: Results,
    cfg: Mapping[str, Any],
    environment: Mapping[str, Any],
) -> str:
    """The page; parts for which the run has no data are left out."""
    sections = [_head(name, cfg, environment), _tiles(results), _summary(results), _time(results)]
    if result.generation is not None:
        sections.append(_acceptance(result.generation.counters))
    if result.expert_load is not None:
        chart = heat_map(result.expert_load, "layer", "expert")
        sections.append(f'<h2>Expert load</h2><div class="card">{chart}</div>')
    if result.generation is not None:
        texts = samples(result.generation.completions, result.pieces)
        sections.append(f"<h2>Samples</h2>{texts}")
    sections.append(_details(results, cfg, environment))
    return page(name, sections)


def _head(name: str, cfg: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    kinds = ("model", "draft", "verifier", "ffn", "engine", "task")
    chosen = [f"{kind} <b>{escape(str(cfg[kind]['name']))}</b>" for kind in kinds if kind in cfg]
    machine = f"{environment.get('cpu', '')}, {environment.get('cores', '?')} cores"
    gpus = environment.get("gpus") or []
    machine += f", {len(gpus)} x {gpus[0]}" if gpus else ""
    return (
        f'<h1>{escape(name)}</h1><p class="meta">{" &middot; ".join(chosen)}</p>'
        f'<p class="meta">{escape(machine)}</p>'
    )


def _tiles(results: Results) -> str:
    wanted = {
        "throughput_tok_s": ("{:.1f}", "tokens per second"),
        "speedup_vs_plain": ("{:.2f}&times;", "speed-up over plain decoding"),
        "mean_acceptance_length": ("{:.2f}", "tokens per step"),
        "acceptance_rate": ("{:.0%}", "of drafted tokens accepted"),
        "ttft_ms": ("{:.0f} ms", "to the first token"),
    }
    tiles = [
        f'<div class="card tile"><b>{shape.format(value)}</b><span>{label}</span></div>'
        for key, (shape, label) in wanted.items()
        if (value := number(results, key)) is not None
    ]
    return f'<div class="tiles">{"".join(tiles)}</div>' if tiles else ""


def _summary(results: Results) -> str:
    lines = [
        f'<tr><td>{escape(row.label)}</td><td class="number">{escape(row.value)}</td>'
        f'<td class="soft">{escape(row.note)}</td></tr>'
        for row in rows(results)
    ]
    if not lines:
        return ""
    return f'<h2>Summary</h2><div class="card"><table>{"".join(lines)}</table></div>'


def _time(results: Results) -> str:
    parts = [
        Share(name, name.split()[-1], share, f"{share * (number(results, 'wall_s') or 0):.2f} s")
        for name, share in shares(results).items()
    ]
    if not parts:
        return ""
    bar = share_bar(parts, "shares of the time")
    return f'<h2>Where the time went</h2><div class="card">{bar}</div>'


def _acceptance(counters: Counters) -> str:
    found = positions(counters)
    if not found:
        return ""
    by_position = [
        Bar(
            str(p.position),
            p.acceptance,
            f"{p.acceptance:.0%}",
            f"{p.accepted} of {p.offered} accepted; {p.reached:.1%} of all steps got this far",
        )
        for p in found
    ]
    longest = max(counters.histogram)
    per_step = [
        Bar(str(n), share, f"{share:.0%}", f"{counters.histogram[n]} steps")
        for n in range(longest + 1)
        for share in [counters.histogram[n] / counters.steps]
    ]
    position = bar_chart(by_position, "position of the draft token")
    step = bar_chart(per_step, "draft tokens accepted in a step")
    return (
        '<h2>Acceptance</h2><div class="pair">'
        f'<div class="card"><h3>How often a tested draft token stands</h3>{position}</div>'
        f'<div class="card"><h3>How many draft tokens a step accepts</h3>{step}</div></div>'
    )


def _details(results: Results, cfg: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    lines = [
        f'<tr><td><code>{escape(key)}</code></td><td class="number">{_shown(value)}</td></tr>'
        for key, value in results.items()
        if value is not None
    ]
    config = escape(yaml.safe_dump(dict(cfg), sort_keys=False, allow_unicode=True))
    machine = escape(yaml.safe_dump(dict(environment), sort_keys=False, allow_unicode=True))
    return (
        "<h2>Details</h2>"
        f'<details><summary>All results</summary><div class="card"><table>{"".join(lines)}</table>'
        f"</div></details><details><summary>Configuration</summary><pre>{config}</pre></details>"
        f"<details><summary>Environment</summary><pre>{machine}</pre></details>"
    )


def _shown(value: Any) -> str:
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))
