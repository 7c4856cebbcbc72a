"""The stages that come with DraftMesh, as "module:Class" strings, so that listing imports none.

Add a line when a class exists; a test imports every one.
"""

Table = dict[str, tuple[str, str]]


def _stages(**lines: str) -> Table:
    """name="module:Class | description", the module below `draftmesh.stages`."""
    split = {name: line.split(" | ") for name, line in lines.items()}
    return {n: (f"draftmesh.stages.{address}", text) for n, (address, text) in split.items()}


BUILTINS: dict[str, Table] = {
    "model": _stages(
        smollm2="model.smollm2:SmolLM2 | SmolLM2-135M-Instruct, fetched from the index once",
        hf="model.hf:HuggingFace | a decoder-only model from a folder or the Hugging Face Hub",
        tiny="model.tiny:Tiny | a tiny random-weight model of a chosen architecture, for tests",
    ),
    "draft": _stages(
        none="draft.none:NoDraft | plain decoding through the same loop",
        ngram="draft.ngram:NGramDraft | prompt lookup: copies what followed the last occurrence",
        small="draft.small:SmallDraft | a smaller model with the same tokenizer",
        cascade="draft.cascade:CascadeDraft | one draft, and another where it proposes nothing",
        self="draft.self:SelfDraft | the target's own first layers, or all but some",
        medusa="draft.medusa.medusa:MedusaDraft | trained heads that guess several tokens at once",
        eagle="draft.eagle.eagle:EagleDraft | a trained one-layer head over the target's states",
    ),
    "verifier": _stages(
        ratio="verifier.ratio:Ratio | accept with min(1, p/q); chains and fixed trees; lossless",
        match="verifier.match:Match | sample from p, descend where a child matches; lossless",
        block="verifier.block:Block | one joint test of a chain; lossless",
        typical="verifier.typical:Typical | Medusa's typical acceptance; lossy",
    ),
    "ffn": _stages(
        auto="ffn.stage:Auto | as the checkpoint says; upcycled when experts are split",
        dense="ffn.stage:Dense | plain feed-forward blocks",
        moe="ffn.stage:Moe | mixture of experts; a dense model is upcycled by copies",
    ),
    "parallel": _stages(
        mesh="parallel.plan:MeshPlan | ranks in a mesh: world = dp*tp = ep*etp",
    ),
    "sampling": _stages(
        processors="sampling.processors:Processors | temperature, top-k, top-p, min-p, penalties",
    ),
    "engine": _stages(
        native="engine.native:NativeEngine | one decode loop for every draft, verifier and plan",
        transformers="engine.transformers:TransformersEngine | its own generate, as a peer",
    ),
    "task": _stages(
        generate="task.generate:Generate | complete the prompts",
        list="task.list:ListPlugins | what is installed, and from where",
        train="task.train:Train | train a draft head on chats",
        certify="task.certify.certify:Certify | check that the output is exactly the target's",
        compare="task.compare.compare:Compare | a table and plots of runs, or of a multirun's grid",
        bench="task.bench:Bench | the method and plain decoding, measured in turn in one run",
    ),
    "data": _stages(
        demo="data.demo:Demo | demo prompts that come with the package",
        jsonl="data.jsonl:Jsonl | prompts or chats from a JSON-lines file",
        selfgen="data.selfgen:SelfGen | chats that the target writes itself, for task=train",
    ),
    "tracking": _stages(
        mlflow="tracking.mlflow:MlflowTracker | MLflow on SQLite under outputs/",
        none="tracking.none:NoTracker | results in the run folder only",
    ),
    "dispatch": _stages(
        local="ffn.local:Local | every expert on this rank",
        all_to_all="ffn.all_to_all:AllToAll | each routed row goes to its expert's rank and back",
        all_to_all_dedup="ffn.dedup:AllToAllDedup | each row goes once to each rank it needs",
        allgather="ffn.allgather:AllGather | every rank gets all rows; results reduce-scattered",
        all_reduce="ffn.all_reduce:AllReduce | ranks hold the same rows; results are summed",
    ),
    "compute": _stages(
        loop="ffn.loop:Loop | one expert after another, in any dtype",
        grouped_mm="ffn.grouped:GroupedMM | torch's grouped matrix product",
        batched="ffn.batched:Batched | one batched product over padded experts",
    ),
    "placement": _stages(
        contiguous="parallel.placement:Contiguous | neighbouring experts share a rank",
        round_robin="parallel.placement:RoundRobin | expert e on rank e modulo the ranks",
    ),
}
"""{kind: {name: ("module:Class", "one-line description")}}"""
