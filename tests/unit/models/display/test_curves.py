"""Small learning curves: drawn where their values are, harmless whatever the names."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from gradrank.models.display.curves import curve_svg
from gradrank.models.display.rankers import ranker_html
from gradrank.models.linear import LinearRanker

SVG = "{http://www.w3.org/2000/svg}"


def drawn(training: dict, measure: str | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(curve_svg(training, measure))


def points(svg: ElementTree.Element, number: int = 0) -> np.ndarray:
    line = svg.findall(f"{SVG}polyline")[number]
    return np.array([[float(value) for value in pair.split(",")] for pair in line.attrib["points"].split()])


def test_points_stand_where_their_values_are() -> None:
    values = [0.1, 0.4, 0.25, 0.3]
    svg = drawn({"curves": {"valid": {"MAP": values}}})
    found = points(svg)
    assert len(found) == 4
    # Steps are evenly spread; heights are an affine function of the values, upwards.
    assert np.allclose(np.diff(found[:, 0]), np.diff(found[:, 0])[0], atol=0.11)
    slope, offset = np.polyfit(values, found[:, 1], 1)
    assert slope < 0
    assert np.allclose(found[:, 1], slope * np.array(values) + offset, atol=0.11)
    # The labels of the axis stand at the heights of their values.
    texts = svg.findall(f"{SVG}text")
    ticks = [node for node in texts if node.attrib.get("text-anchor") == "end" and node.text != "step"]
    assert len(ticks) >= 2
    for tick in ticks:
        assert float(tick.attrib["y"]) - 4 == pytest.approx(slope * float(tick.text or "nan") + offset, abs=0.5)


def test_the_best_step_is_marked() -> None:
    training = {"curves": {"train": {"MAP": [0.1, 0.4, 0.5]}, "valid": {"MAP": [0.1, 0.3, 0.2]}}, "best": 2}
    svg = drawn(training)
    (title,) = [node.text for node in svg.iter(f"{SVG}title")]
    assert title == "best: step 2"
    (marked,) = [node for node in svg.findall(f"{SVG}line") if node.find(f"{SVG}title") is not None]
    assert float(marked.attrib["x1"]) == points(svg)[1, 0]
    # Validation data first, then training data, each with its own dashes.
    assert [node.text for node in svg.findall(f"{SVG}text") if "text-anchor" not in node.attrib] == ["valid", "train"]
    first, second = svg.findall(f"{SVG}polyline")
    assert first.attrib["stroke-dasharray"] != second.attrib["stroke-dasharray"]
    assert "valid ends at 0.2000, train ends at 0.5000; best: step 2" in svg.attrib["aria-label"]
    for best in (None, 0, 4, True, "2"):
        assert not list(drawn({**training, "best": best}).iter(f"{SVG}title"))


def test_a_measure_may_be_chosen_and_missing_values_leave_gaps() -> None:
    training = {"curves": {"valid": {"MAP": [0.1, 0.2], "MRR": [0.5, float("nan"), 0.7]}}}
    assert len(points(drawn(training))) == 2
    assert len(points(drawn(training, "MRR"))) == 2
    assert curve_svg(training, "ERR") == ""
    assert curve_svg({}) == ""
    assert curve_svg({"curves": {"valid": {"MAP": []}}}) == ""


def test_long_curves_are_thinned() -> None:
    found = points(drawn({"curves": {"valid": {"MAP": np.linspace(0, 1, 5000).tolist()}}}))
    assert len(found) == 400
    assert found[0, 1] > found[-1, 1]


def test_names_are_harmless() -> None:
    evil = '"><script>alert(1)</script>'
    training = {"curves": {evil: {evil: [0.1, 0.2]}}, "learner": evil, "measure": evil}
    drawn(training)  # well-formed
    shown = ranker_html(LinearRanker([1.0], feature_names=[evil], training=training))
    assert "<script" not in shown
    assert re.sub(r"<[^>]*>", "", shown).count("&lt;script&gt;") >= 3
