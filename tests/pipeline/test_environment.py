import json
import subprocess
import sys
from pathlib import Path

from draftmesh.pipeline.environment import available_cores, environment, tags


def test_an_environment_is_a_json_document() -> None:
    found = environment(threads=2)
    assert json.loads(json.dumps(found)) == found
    assert found["versions"].keys() >= {"torch", "transformers", "mlflow"}
    assert found["cores"] == available_cores() >= 1
    assert found["threads"] == 2
    assert found["cpu"]


def test_versions_are_read_without_importing_the_packages() -> None:
    code = (
        "import sys; from draftmesh.pipeline.environment import environment; environment(); "
        "sys.exit('torch' in sys.modules or 'mlflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_tags_name_code_folder_and_command() -> None:
    found = environment()
    found["git"] = {"sha": "abc", "dirty": True}
    made = tags(found, Path("outputs/run"), ["draft=eagle", "seed=1"])
    assert made["git.sha"] == "abc"
    assert made["git.dirty"] == "true"
    assert made["output_dir"] == str(Path("outputs/run").absolute())
    assert made["hydra.overrides"] == "draft=eagle seed=1"
    found["git"] = None
    assert "git.sha" not in tags(found, Path("x"), [])
