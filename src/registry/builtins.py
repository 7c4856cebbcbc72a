"""The stages that come with DraftMesh, as "module:Class" strings, so that listing imports none.

Add a line when a class exists; a test imports every one.
"""

_STAGES = "draftmesh.stages"

BUILTINS: dict[str, dict[str, tuple[str, str]]] = {
    "model": {},
    "draft": {},
    "verifier": {},
    "ffn": {
        "auto": (
            f"{_STAGES}.ffn.stage:Auto",
            "as the checkpoint says; dense models are upcycled under expert parallelism",
        ),
        "dense": (
            f"{_STAGES}.ffn.stage:Dense",
            "dense feed-forward blocks, as a dense checkpoint has them",
        ),
        "moe": (
            f"{_STAGES}.ffn.stage:Moe",
            "a mixture of experts; a dense model is upcycled by copying",
        ),
    },
    "parallel": {
        "mesh": (f"{_STAGES}.parallel.plan:MeshPlan", "ranks in a mesh world = dp*tp = ep*etp"),
    },
    "sampling": {},
    "engine": {},
    "task": {},
    "data": {},
    "tracking": {},
    "dispatch": {
        "local": (f"{_STAGES}.ffn.local:Local", "no communication, every expert on the rank"),
        "all_to_all": (f"{_STAGES}.ffn.all_to_all:AllToAll", "one row per (token, expert) pair"),
        "all_to_all_dedup": (
            f"{_STAGES}.ffn.dedup:AllToAllDedup",
            "one row per (token, rank) pair",
        ),
        "allgather": (f"{_STAGES}.ffn.allgather:AllGather", "every token to every rank, sums back"),
        "all_reduce": (
            f"{_STAGES}.ffn.all_reduce:AllReduce",
            "tokens on all ranks, one all-reduce of their shares",
        ),
    },
    "compute": {
        "loop": (f"{_STAGES}.ffn.loop:Loop", "one expert at a time, any dtype"),
        "grouped_mm": (
            f"{_STAGES}.ffn.grouped:GroupedMM",
            "one grouped matrix product per projection",
        ),
        "batched": (f"{_STAGES}.ffn.batched:Batched", "batched products on gathered weights"),
    },
    "placement": {
        "contiguous": (
            f"{_STAGES}.parallel.placement:Contiguous",
            "consecutive experts on each rank",
        ),
        "round_robin": (
            f"{_STAGES}.parallel.placement:RoundRobin",
            "expert e on rank e modulo ranks",
        ),
    },
}
"""{kind: {name: ("module:Class", "one-line description")}}"""
