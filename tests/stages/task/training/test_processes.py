import os
import socket
import subprocess
import sys
from pathlib import Path

import torch

SCRIPT = Path(__file__).with_name("two_processes.py")


def test_two_processes_train_one_head(tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(2):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
        place |= {"MASTER_ADDR": "localhost", "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
        processes.append(
            subprocess.Popen(
                [sys.executable, str(SCRIPT), str(tmp_path)],
                env=os.environ | {name: str(value) for name, value in place.items()},
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    for process in processes:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
    first, second = (torch.load(tmp_path / f"rank{rank}.pt") for rank in range(2))
    assert first["world"] == 2
    assert first["step"] == second["step"] > 2
    for name, value in first["weights"].items():
        assert torch.equal(value, second["weights"][name])
    assert (tmp_path / "run" / "checkpoint").is_dir()
