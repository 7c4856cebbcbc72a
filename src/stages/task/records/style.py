"""The style sheet of report.html and grid.html, light and dark."""

STYLE = """
:root { color-scheme: light dark;
  --page: #fbfbfa; --card: #fff; --ink: #1d2125; --soft: #5d666f; --line: #e2e5e8;
  --draft: #0f766e; --draft-bg: #c9efe6; --verify: #4f63d2; --prefill: #98a3ae;
  --wait: #b8a6c9; --overhead: #d08a1d; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171a; --card: #1c2024; --ink: #e4e7ea; --soft: #98a2ac; --line: #30363c;
  --draft: #4fd1bd; --draft-bg: #12483f; --verify: #8d9bf5; --prefill: #6f7a85;
  --wait: #8d7aa3; --overhead: #e5ab50; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 1.12rem; margin: 40px 0 12px; }
h3 { font-size: .92rem; margin: 0 0 8px; font-weight: 600; }
p { margin: 0 0 8px; }
.note, .meta { color: var(--soft); font-size: .9rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px;
  margin: 24px 0 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 16px 18px; min-width: 0; }
.tile b { display: block; font-size: 1.75rem; line-height: 1.2; font-variant-numeric: tabular-nums;
  font-weight: 650; letter-spacing: -.02em; }
.tile span { color: var(--soft); font-size: .87rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 12px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td { padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td.number { text-align: right; white-space: nowrap; }
td.soft { color: var(--soft); }
th { padding: 5px 14px 5px 0; text-align: left; font-weight: 600; font-size: .87rem;
  border-bottom: 1px solid var(--line); white-space: nowrap; }
.matrix td, .matrix th { padding: 7px 14px; } .matrix tr:first-child th + th { text-align: right; }
.matrix tr:last-child th { border-bottom: 0; }
.matrix .shaded { background: color-mix(in srgb, var(--draft) calc(var(--share) * .55),
  transparent); }
.runs tr.best td { font-weight: 650; } a { color: var(--verify); }
svg { display: block; } svg.wide { width: 100%; height: auto; }
svg.chart { width: 100%; height: auto; max-width: 520px; }
svg.stretch { width: 100%; height: 30px; border-radius: 6px; } .scroll { overflow-x: auto; }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); }
.tick { fill: var(--soft); font-size: 12px; }
.value { fill: var(--ink); font-size: 12px; text-anchor: middle; }
.bar, .cell { fill: var(--draft); }
.draft { fill: var(--draft); background: var(--draft); }
.verify { fill: var(--verify); background: var(--verify); }
.prefill { fill: var(--prefill); background: var(--prefill); }
.wait { fill: var(--wait); background: var(--wait); }
.overhead { fill: var(--overhead); background: var(--overhead); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 22px; margin: 12px 0 0; font-size: .9rem;
  color: var(--soft); }
.legend b { color: var(--ink); font-weight: 600; }
.swatch { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; }
.sample { margin: 12px 0; }
.prompt { white-space: pre-wrap; overflow-wrap: anywhere; color: var(--soft); margin-bottom: 10px;
  max-height: 9em; overflow-y: auto; }
.tokens { white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.75; }
.tokens i { font-style: normal; border-radius: 3px; padding: 1px 0; }
.tokens i.d, .legend i.d { background: var(--draft-bg); box-shadow: inset 0 -2px 0 var(--draft); }
.tokens i.d + i.d { margin-left: 1px; }
.tokens i:hover { outline: 1px solid var(--ink); }
.tokens s { text-decoration: none; color: var(--soft); opacity: .7; }
.legend i.t { border: 1px solid var(--soft); }
details { margin-top: 8px; } summary { cursor: pointer; font-weight: 600; padding: 4px 0; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 14px 16px; overflow-x: auto; line-height: 1.5; }
pre, code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .86rem; }
code { overflow-wrap: anywhere; }
@media print { details > * { display: block; } .card { break-inside: avoid; } }
"""
