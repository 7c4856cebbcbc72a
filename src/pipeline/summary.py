"""The results worth a line in a table, as text."""

from dataclasses import dataclass

from draftmesh.pipeline.results import Results


@dataclass(frozen=True)
class Row:
    """A line of the summary."""

    label: str
    value: str
    note: str = ""


def rows(results: Results) -> list[Row]:
    """The lines that apply to these results, in the order in which people ask for them."""
    makers = (_speed, _speedup, _peers, _predicted, _acceptance, _time, _latency, _exactness, _plan)
    return [row for make in makers for row in make(results)]


def number(results: Results, name: str) -> float | None:
    """A numeric result; None if it is absent or does not apply."""
    value = results.get(name)
    return float(value) if isinstance(value, int | float) else None


def shares(results: Results) -> dict[str, float]:
    """The shares of the loop's time: prefill, draft, verify (one where an engine cannot tell them
    apart), with several ranks waiting for each other, overhead; empty if nothing ran."""
    wall = number(results, "wall_s")
    if not wall:
        return {}
    parts = ("prefill", "draft", "verify", "wait", "overhead")
    found = {part: (number(results, f"{part}_s") or 0.0) / wall for part in parts}
    if (number(results, "world_size") or 1) == 1:
        del found["wait"]
    if _drafts(results) and results.get("draft_ms") is None:
        del found["draft"]
        return {"draft and verify" if k == "verify" else k: part for k, part in found.items()}
    return found


def _speed(results: Results) -> list[Row]:
    rate, tokens = number(results, "throughput_tok_s"), number(results, "new_tokens")
    if rate is None:
        return []
    forwards = number(results, "target_forwards") or 0
    return [Row("tokens/s", f"{rate:.1f}", f"{tokens:.0f} tokens, {forwards:.0f} target forwards")]


def _speedup(results: Results) -> list[Row]:
    gain = number(results, "speedup_vs_plain")
    if gain is None:
        return []
    plain = number(results, "plain_throughput_tok_s")
    note = "" if plain is None else f"plain decoding of the same model: {plain:.1f} tokens/s"
    return [Row("speed-up", f"{gain:.2f}x", note)]


def _peers(results: Results) -> list[Row]:
    """Other engines' plain decoding, which task=bench can measure in the same run."""
    rows = []
    for key in results:
        gain, peer = number(results, key), key.removeprefix("method_vs_")
        if gain is None or peer == key:
            continue
        speed = number(results, f"{peer}_throughput_tok_s")
        plain = number(results, f"plain_vs_{peer}")
        note = f"its plain decoding: {speed:.1f} tokens/s"
        note += "" if plain is None else f"; plain decoding here: {plain:.2f}x of that"
        rows.append(Row(f"against {peer}", f"{gain:.2f}x", note))
    return rows


def _predicted(results: Results) -> list[Row]:
    gain = number(results, "predicted_speedup")
    if gain is None or not _drafts(results):
        return []
    return [Row("predicted speed-up", f"{gain:.2f}x", "from the acceptance and the costs")]


def _acceptance(results: Results) -> list[Row]:
    length, rate = number(results, "mean_acceptance_length"), number(results, "acceptance_rate")
    if length is None or rate is None:
        return []
    alpha = number(results, "alpha") or 0.0
    note = f"of drafted tokens; {alpha:.1%} of tested ones"
    return [
        Row("mean acceptance length", f"{length:.2f}", "tokens per step, bonus included"),
        Row("acceptance rate", f"{rate:.1%}", note if _drafts(results) else "nothing was drafted"),
        *_chosen(results),
    ]


def _chosen(results: Results) -> list[Row]:
    """What draft.k=auto came to."""
    k = number(results, "chosen_k")
    return [] if k is None else [Row("chosen k", f"{k:.0f}", str(results["chosen_k_reason"]))]


def _time(results: Results) -> list[Row]:
    parts = shares(results)
    if not parts:
        return []
    note = ", ".join(f"{name} {share:.0%}" for name, share in parts.items())
    draft, verify, overhead = (number(results, f"{p}_ms") for p in ("draft", "verify", "overhead"))
    rows = [Row("time", f"{number(results, 'wall_s'):.2f} s", note)]
    if draft is not None and verify is not None and overhead is not None:
        note = f"draft {draft:.1f}, verify {verify:.1f}, overhead {overhead:.1f}"
        rows.append(Row("per step", f"{draft + verify + overhead:.1f} ms", note))
    return rows


def _latency(results: Results) -> list[Row]:
    first, token = number(results, "ttft_ms"), number(results, "tpot_ms")
    if first is None:
        return []
    note = "" if token is None else f"then {token:.1f} ms per token"
    return [Row("first token", f"{first:.0f} ms", note)]


def _exactness(results: Results) -> list[Row]:
    state, match = results.get("exactness"), number(results, "exact_match")
    rows = []
    if "certificate" in results:
        rows.append(Row("exactness", str(state), "as certificate.json tells"))
    elif state == "checked":
        rows.append(Row("exactness", "checked", "every token equals plain decoding's"))
    elif state == "diverged" and match is not None:
        note = f"{match:.0%} of prompts equal plain decoding's"
        if results.get("dtype") in ("bfloat16", "float16", "float32"):
            note += f"; {results['dtype']} rounding turns near-ties, task=certify tells them apart"
        rows.append(Row("exactness", "diverged", note))
    elif state == "unchecked" and _drafts(results) and results.get("lossy") is not True:
        rows.append(Row("exactness", "unchecked", _how_to_check(results)))
    if results.get("lossy") is True:
        rows.append(Row("lossy", "yes", "this choice may change the output"))
    return rows


def _how_to_check(results: Results) -> str:
    if number(results, "speedup_vs_plain") is None:
        return "task.baseline=true compares with plain decoding"
    return "sampled tokens need not equal plain decoding's; task=certify tests their distribution"


def _plan(results: Results) -> list[Row]:
    rows = []
    world = number(results, "world_size")
    if world is not None and world > 1:
        sizes = {name: number(results, name) for name in ("dp", "tp", "ep", "etp")}
        note = ", ".join(f"{name} {size:.0f}" for name, size in sizes.items() if size is not None)
        rows.append(Row("ranks", f"{world:.0f}", note))
    threads = number(results, "threads")
    if threads is not None:
        rows.append(Row("CPU threads", f"{threads:.0f}", "shared by the ranks" if rows else ""))
    return rows


def _drafts(results: Results) -> bool:
    """Whether anything was drafted at all."""
    return bool(number(results, "drafted_tokens"))
