"""Options that hold keys of the user's own choice, which Hydra takes only after a plus sign."""

import re

OPEN = ("sampling.logit_bias", "model.extra")
"""Each is an empty mapping in the configuration."""


def add_plus(arguments: list[str]) -> list[str]:
    """The arguments with `++` before those options: `++sampling.logit_bias={5:1.0}`."""
    names = "|".join(map(re.escape, OPEN))
    return [f"++{a}" if re.match(rf"({names})[.=]", a) else a for a in arguments]
