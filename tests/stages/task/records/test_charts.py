import re

from draftmesh.stages.task.records.charts import Length, length_chart


def test_a_label_that_is_too_long_is_cut_and_told_in_full_on_pointing():
    long = "draft=eagle " * 20
    chart = length_chart([Length(long, 2.0, "2.0", "fast"), Length("a", 1.0, "1.0", "slow")], "x")
    (cut,) = re.findall(r'x="([\d.]+)"[^>]*text-anchor="end">(draft=[^<]*)<', chart)
    assert cut[1].endswith("...")
    assert len(cut[1]) * 6.6 <= float(cut[0])
    assert f"<title>{long}: fast</title>" in chart
    assert "<title>slow</title>" in chart
