"""From a local folder or a Hub id to a model that is ready to decode."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.utils.hub import cached_file

from draftmesh.registry.contracts.stage import Checkpoint
from draftmesh.registry.errors import UserError
from draftmesh.stages.model.causal import attention_name, causal_class
from draftmesh.stages.model.device import resolve_device
from draftmesh.stages.model.dtype import resolve_dtype
from draftmesh.stages.model.eos import eos_ids, text_config
from draftmesh.stages.model.folder import check_folder, has_tokenizer
from draftmesh.stages.model.options import LoadOptions
from draftmesh.stages.model.progress import bar, quiet

_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


def load_checkpoint(source: str, name: str, options: LoadOptions) -> Checkpoint:
    """Load the causal LM in a folder or under a Hub id, ready to decode (see `ready`).

    Raises UserError, in one line, for whatever is wrong with the source or the options.
    """
    options.check()
    device = resolve_device(options.device)
    dtype = resolve_dtype(options.dtype, device)
    folder = Path(source).expanduser()
    local = folder.exists() or not _HUB_ID.fullmatch(source)
    if local:
        check_folder(folder)
        source = str(folder)
    with quiet(downloads=not local), _explained(source, local):
        model = _load_model(source, name, options, device, dtype)
        tokenizer = None
        if not local or has_tokenizer(folder):
            tokenizer = AutoTokenizer.from_pretrained(source, **_origin(options))
        path = folder.resolve() if local else _snapshot(source, options)
    return ready(name, path, model, tokenizer)


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
    source: str, name: str, options: LoadOptions, device: torch.device, dtype: torch.dtype
) -> Any:
    config = AutoConfig.from_pretrained(source, **_origin(options))
    cls = causal_class(config, source, options)
    placed = options.device_map or (None if device.type == "cpu" else {"": device})
    with bar(f"Loading {name}"):
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            source,
            config=config,
            dtype=dtype,
            device_map=placed,
            output_loading_info=True,
            **implementations(options.attention, cls, dtype),
            **_origin(options),
        )
    model, info = loaded
    if missing := sorted(info["missing_keys"]):
        raise UserError(
            f"model.path={source} lacks {len(missing)} of the model's tensors, such as {missing[0]}"
        )
    return model


def _origin(options: LoadOptions) -> dict[str, Any]:
    return {"trust_remote_code": options.trust_remote_code, "revision": options.revision or "main"}


def _snapshot(source: str, options: LoadOptions) -> Path:
    found = cached_file(source, "config.json", revision=options.revision or "main")
    return Path(str(found)).parent


@contextmanager
def _explained(source: str, local: bool) -> Iterator[None]:
    """Whatever goes wrong inside is the source's fault: say so in one line."""
    try:
        yield
    except UserError:
        raise
    except torch.OutOfMemoryError as error:
        raise UserError(
            f"model.path={source} does not fit the device; "
            "try model.dtype=bfloat16 or model.device_map=auto"
        ) from error
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        place = "" if local else " (no such folder, so taken as a Hub id)"
        raise UserError(f"cannot load model.path={source}{place}: {lines[0]}") from error
