"""Functions that the launcher's tests run in ranks."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from draftmesh.registry import UserError


def places(args: Any, ranks: Any) -> Any:
    """Where each rank is and what it was given."""
    import torch

    print(f"rank {ranks.rank} speaks")
    choice = ranks.decide(torch.tensor([ranks.rank, 7]), torch.tensor([ranks.rank == 0]))
    mine = {
        "rank": ranks.rank,
        "args": args,
        "decided": [part.tolist() for part in choice],
        "agreed": ranks.agree(ranks.rank, -ranks.rank),
        "own": ranks.own("abcde"),
        "threads": torch.get_num_threads(),
    }
    everyone = ranks.gather_ranks(mine)
    owned = ranks.gather(ranks.own("abcde"))
    return None if owned is None else (everyone, ranks.restore(owned))


def raises(args: Any, ranks: Any) -> None:
    """Rank 1 fails; the others wait for it in a collective."""
    if ranks.rank == 1:
        raise UserError("draft.k=0: must be at least 1") if args == "user" else KeyError("lost")
    ranks.agree(1)


def endures(args: Any, ranks: Any) -> None:
    """Every rank says who it is and works on; rank `args["kill"]` kills itself after a while."""
    Path(args["folder"], str(os.getpid())).touch()
    for step in range(10_000):
        ranks.agree(step)
        time.sleep(0.01)
        if step == 20 and ranks.rank == args.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)


def waits(args: Any, ranks: Any) -> str:
    """Every rank says who it is and works on until there is a file "0"."""
    Path(args["folder"], str(os.getpid())).touch()
    while not all(ranks.agree(-Path(args["folder"], "0").exists())):
        time.sleep(0.01)
    return "went on"


def hangs(args: Any, ranks: Any) -> None:
    """Rank 1 never comes to the collective."""
    if ranks.rank == 1:
        time.sleep(600)
    ranks.agree(1)
