"""What each kind of draft needs to be trained: one recipe per kind."""

from importlib import import_module
from typing import Any, Protocol, cast

from accelerate import Accelerator

from draftmesh.registry import UserError
from draftmesh.stages.task.training.loop import Plan
from draftmesh.stages.task.training.material import Material

RECIPES = {
    "eagle": "eagle.recipe:EagleRecipe",
    "medusa": "medusa.recipe:MedusaRecipe",
    "small": "small.recipe:SmallRecipe",
    "self": "self.recipe:SelfRecipe",
}
"""draft -> "module:Class", the module below this package; imported when chosen."""


class Recipe(Protocol):
    """A draft to train, its loss, and the batches to train and to measure it on."""

    def __init__(self, material: Material) -> None:
        """Raises UserError naming the option to change."""
        ...

    def plan(self, accelerator: Accelerator) -> Plan[Any]:
        """For the training loop; its epoch is `epoch`."""
        ...

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of an epoch, as lists of corpus indices."""
        ...


def recipe_for(draft: str) -> type[Recipe]:
    """The recipe of a draft. Raises UserError naming those that can be trained."""
    if draft not in RECIPES:
        known = " or ".join(f"draft={kind}" for kind in RECIPES)
        raise UserError(f"task=train cannot train draft={draft}: choose {known}")
    module, name = RECIPES[draft].split(":")
    return cast(type[Recipe], getattr(import_module(f"{__package__}.{module}"), name))
