"""From a local folder or a Hub id to a model that is ready to decode."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.registry.errors import UserError
from draftmesh.stages.model.causal import attention_name, causal_class
from draftmesh.stages.model.device import resolve_device
from draftmesh.stages.model.dtype import resolve_dtype
from draftmesh.stages.model.eos import eos_ids, text_config
from draftmesh.stages.model.explain import explained
from draftmesh.stages.model.folder import check_folder, has_tokenizer
from draftmesh.stages.model.hub import reachable, snapshot
from draftmesh.stages.model.options import LoadOptions
from draftmesh.stages.model.progress import bar, quiet
from draftmesh.stages.model.shorten import keep_first_layers

_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


def load_checkpoint(
    source: str, name: str, options: LoadOptions, option: str = "model.path"
) -> Checkpoint:
    """Load the causal LM in a folder or under a Hub id, ready to decode (see `ready`).

    Raises UserError, in one line, for whatever is wrong with the options or with the source, which
    the user gave as `option`.
    """
    options.check()
    device = resolve_device(options.device)
    dtype = resolve_dtype(options.dtype, device)
    what = f"{option}={source}"
    folder = Path(source).expanduser()
    if folder.exists() or not _HUB_ID.fullmatch(source):
        check_folder(folder, what)
        with quiet(), explained(what), bar(f"Loading {name}"):
            model = _load_model(str(folder), what, options, device, dtype, {})
            tokenizer = _tokenizer(str(folder), options, {}) if has_tokenizer(folder) else None
        return ready(name, folder.resolve(), model, tokenizer)
    online = reachable()
    hint = "" if online else " and the Hub cannot be reached"
    revision = options.revision or "main"
    origin = {"revision": revision, "local_files_only": not online}
    with quiet(downloads=True), explained(what, f" (no such folder{hint})"):
        model = _load_model(source, what, options, device, dtype, origin)
        tokenizer = _tokenizer(source, options, origin)
        return ready(name, snapshot(source, revision), model, tokenizer)


def ready(name: str, path: Path | None, model: Any, tokenizer: Any) -> Checkpoint:
    """Evaluation mode, no gradients, and nothing left of the checkpoint's sampling defaults."""
    model.eval().requires_grad_(False)
    eos = eos_ids(model, tokenizer)
    config = text_config(model.config)
    pad = getattr(tokenizer, "pad_token_id", None)
    model.generation_config = GenerationConfig(
        bos_token_id=getattr(config, "bos_token_id", None),
        eos_token_id=list(eos) or None,
        pad_token_id=eos[0] if pad is None and eos else pad,
    )
    return Checkpoint(name, path, model, tokenizer, eos)


def implementations(asked: str, cls: type | None, dtype: torch.dtype) -> dict[str, str]:
    """transformers' arguments that choose attention (registered if it is ours) and experts.

    transformers' default for experts, a grouped product, has no float64; its loop has.
    """
    chosen = {"experts_implementation": "eager"} if dtype == torch.float64 else {}
    attention = attention_name(asked, cls)
    if attention == "draftmesh":
        import_module("draftmesh.stages.model.attention")
    return chosen if attention is None else chosen | {"attn_implementation": attention}


def _load_model(
    source: str,
    what: str,
    options: LoadOptions,
    device: torch.device,
    dtype: torch.dtype,
    origin: dict[str, Any],
) -> Any:
    origin = origin | {"trust_remote_code": options.trust_remote_code}
    config = AutoConfig.from_pretrained(source, **origin)
    cls = causal_class(config, what, options)
    if options.layers is not None:
        keep_first_layers(config, options.layers)
    placed = options.device_map or (None if device.type == "cpu" else {"": device})
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        source,
        config=config,
        dtype=dtype,
        device_map=placed,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # so that they are told, below
        **implementations(options.attention, cls, dtype),
        **origin,
    )
    model, info = loaded
    _check_complete(what, info)
    return model


def _check_complete(what: str, info: dict[str, Any]) -> None:
    for key, found, expected in sorted(info["mismatched_keys"]):
        raise UserError(
            f"{what}: {key} has shape {tuple(found)}, "
            f"but its config.json makes it {tuple(expected)}"
        )
    if missing := sorted(info["missing_keys"]):
        raise UserError(f"{what} lacks {len(missing)} of the model's tensors, such as {missing[0]}")


def _tokenizer(source: str, options: LoadOptions, origin: dict[str, Any]) -> Any:
    return AutoTokenizer.from_pretrained(
        source, trust_remote_code=options.trust_remote_code, **origin
    )
