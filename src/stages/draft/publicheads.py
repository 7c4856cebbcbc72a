"""Heads that others have published, by the model they were trained for."""

_EAGLE = {
    "lmsys/vicuna-7b-v1.3": "yuhuili/EAGLE-Vicuna-7B-v1.3",
    "lmsys/vicuna-13b-v1.3": "yuhuili/EAGLE3-Vicuna1.3-13B",
    "lmsys/vicuna-33b-v1.3": "yuhuili/EAGLE-Vicuna-33B-v1.3",
    "meta-llama/Llama-2-7b-chat-hf": "yuhuili/EAGLE-llama2-chat-7B",
    "meta-llama/Llama-2-13b-chat-hf": "yuhuili/EAGLE-llama2-chat-13B",
    "meta-llama/Llama-2-70b-chat-hf": "yuhuili/EAGLE-llama2-chat-70B",
    "meta-llama/Meta-Llama-3-8B-Instruct": "yuhuili/EAGLE-LLaMA3-Instruct-8B",
    "meta-llama/Meta-Llama-3-70B-Instruct": "yuhuili/EAGLE-LLaMA3-Instruct-70B",
    "meta-llama/Llama-3.1-8B-Instruct": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
    "meta-llama/Meta-Llama-3.1-8B-Instruct": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
    "meta-llama/Llama-3.3-70B-Instruct": "yuhuili/EAGLE3-LLaMA3.3-Instruct-70B",
    "deepseek-ai/DeepSeek-R1-Distill-Llama-8B": "yuhuili/EAGLE3-DeepSeek-R1-Distill-LLaMA-8B",
    "mistralai/Mixtral-8x7B-Instruct-v0.1": "yuhuili/EAGLE-mixtral-instruct-8x7B",
    "Qwen/Qwen2-7B-Instruct": "yuhuili/EAGLE-Qwen2-7B-Instruct",
    "Qwen/Qwen2-72B-Instruct": "yuhuili/EAGLE-Qwen2-72B-Instruct",
    "Qwen/Qwen3-8B": "RedHatAI/Qwen3-8B-speculator.eagle3",
    "Qwen/Qwen3-32B": "RedHatAI/Qwen3-32B-speculator.eagle3",
    "Qwen/Qwen3-30B-A3B-Instruct-2507": "RedHatAI/Qwen3-30B-A3B-Instruct-2507-speculator.eagle3",
    "openai/gpt-oss-20b": "RedHatAI/gpt-oss-20b-speculator.eagle3",
}
_MEDUSA = {
    "lmsys/vicuna-7b-v1.3": "FasterDecoding/medusa-vicuna-7b-v1.3",
    "lmsys/vicuna-13b-v1.3": "FasterDecoding/medusa-vicuna-13b-v1.3",
    "lmsys/vicuna-33b-v1.3": "FasterDecoding/medusa-vicuna-33b-v1.3",
}
_HEADS = {"eagle": _EAGLE, "medusa": _MEDUSA}


def public_head(kind: str, model: str) -> str | None:
    """The Hub id of a head for a model, which is a Hub id or the name of a folder; None if none is
    known."""
    wanted = _last(model)
    known = _HEADS.get(kind, {})
    return next((head for name, head in known.items() if _last(name) == wanted), None)


def _last(name: str) -> str:
    return name.rstrip("/").rsplit("/", 1)[-1].lower()
