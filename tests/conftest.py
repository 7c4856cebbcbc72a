import sys
from pathlib import Path

import torch
from hypothesis import Phase, settings

sys.path.insert(0, str(Path(__file__).parent))

# Models as small as these are many times slower with two threads, above all on a busy machine.
torch.set_num_threads(1)

# No deadline: a busy machine is no failure. No shrinking: examples that run a model take minutes.
phases = (Phase.explicit, Phase.reuse, Phase.generate)
settings.register_profile(
    "draftmesh", deadline=None, derandomize=True, print_blob=True, phases=phases
)
settings.load_profile("draftmesh")
