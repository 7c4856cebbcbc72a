"""The stages that come with DraftMesh, as "module:Class" strings, so that listing imports none.

Add a line when a class exists; a test imports every one.
"""

_STAGES = "draftmesh.stages"

BUILTINS: dict[str, dict[str, tuple[str, str]]] = {
    "model": {},
    "draft": {},
    "verifier": {},
    "ffn": {},
    "parallel": {},
    "sampling": {},
    "engine": {},
    "task": {},
    "data": {},
    "tracking": {},
    "dispatch": {},
    "compute": {},
    "placement": {},
}
"""{kind: {name: ("module:Class", "one-line description")}}"""
