import pytest

from draftmesh.cli.flags import check_flags
from draftmesh.registry import UserError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cfg"], "--cfg: takes one of job, hydra, all, for example --cfg job"),
        (["-c", "draft=none"], "-c: takes one of job, hydra, all, for example -c job"),
        (["--cfg=jobs"], "--cfg: takes one of job, hydra, all"),
        (["draft=none", "-cn"], "-cn: a value is needed: -cn <value>"),
        (["--package", "--resolve"], "--package: a value is needed"),
    ],
)
def test_a_flag_without_its_value_is_one_line(arguments, message):
    with pytest.raises(UserError) as error:
        check_flags(arguments)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "arguments", [["--cfg", "job"], ["--cfg=all"], ["-i"], ["-cn", "config"], ["draft=none", "-m"]]
)
def test_others_pass(arguments):
    check_flags(arguments)
