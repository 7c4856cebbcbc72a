"""The kinds of stage, and the methods that each kind's contract asks for."""

KINDS: dict[str, tuple[str, ...]] = {
    "model": ("load",),
    "draft": ("start", "observe", "propose", "drop", "idle"),
    "verifier": ("verify",),
    "ffn": ("upcycles", "apply"),
    "parallel": (),
    "sampling": ("__call__",),
    "engine": ("generate",),
    "task": (),
    "data": ("load",),
    "tracking": ("start", "log_metrics", "set_tags", "log_artifacts", "finish"),
    "dispatch": ("dispatch", "combine", "predicted_bytes"),
    "compute": ("supports", "__call__"),
    "placement": ("place",),
}
"""Kind -> required methods. The first ten are config groups; the last three belong to ffn and
parallel and are chosen by `parallel.dispatch`, `parallel.compute` and `parallel.placement`."""

SUB_KINDS = ("dispatch", "compute", "placement")

GROUPS = tuple(kind for kind in KINDS if kind not in SUB_KINDS)


def option(kind: str) -> str:
    """The command-line option that chooses a plugin of this kind."""
    return f"parallel.{kind}" if kind in SUB_KINDS else kind
