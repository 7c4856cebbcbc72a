"""Launches a case: python launch_main.py <case> <plan as JSON> <arguments as JSON>."""

import json
import sys

from draftmesh.pipeline.launch import launch
from draftmesh.stages.parallel.plan import Plan

if __name__ == "__main__":
    case, plan, arguments = sys.argv[1], *map(json.loads, sys.argv[2:])
    result = launch(f"launch_cases:{case}", arguments, Plan(**plan), say=lambda line: None)
    print("RESULT", json.dumps(result), flush=True)
