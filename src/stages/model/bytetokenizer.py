"""A tokenizer made of nothing: one token per byte."""

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as Decoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

from draftmesh.registry.errors import UserError

EOS, UNKNOWN = "<eos>", "<unk>"
SMALLEST = 4


def byte_tokenizer(vocab_size: int) -> PreTrainedTokenizerFast:
    """At most `vocab_size` tokens: EOS is 0, unknown is 1, then bytes, the commonest first.

    258 hold every byte. No chat template, nothing added in front of a prompt.
    """
    if vocab_size < SMALLEST:
        raise UserError(f"model.vocab_size={vocab_size} is below {SMALLEST}")
    names = [EOS, UNKNOWN, *_bytes_by_use()][:vocab_size]
    core = Tokenizer(
        BPE(vocab={name: i for i, name in enumerate(names)}, merges=[], unk_token=UNKNOWN)
    )
    core.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = Decoder()
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=EOS,
        pad_token=EOS,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
    )


def _bytes_by_use() -> list[str]:
    """The 256 byte symbols: the space, small letters, other printable ASCII, the rest."""
    spelled = {_spell(symbol): symbol for symbol in sorted(ByteLevel.alphabet())}
    first = [" ", *map(chr, range(ord("a"), ord("z") + 1)), "\n", *map(chr, range(33, 127))]
    common = list(dict.fromkeys(spelled[char] for char in first))
    return common + [symbol for symbol in sorted(spelled.values()) if symbol not in common]


def _spell(symbol: str) -> str:
    """The character of an ASCII byte's symbol; any other symbol stands for itself."""
    return {"Ġ": " ", "Ċ": "\n"}.get(symbol, symbol)
