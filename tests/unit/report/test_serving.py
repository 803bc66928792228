"""Quality against cost in the report."""

from __future__ import annotations

from gradrank.models.feature import FeatureRanker
from gradrank.report.serving import serving_view
from gradrank.selection.distil import Served


def point(name: str, value: float, microseconds: float) -> Served:
    return Served(name, value, 1, microseconds, lambda: FeatureRanker("a"))


def test_places_and_the_line_of_what_no_cheaper_one_equals() -> None:
    points = [point("slow", 0.5, 100.0), point("quick", 0.3, 1.0), point("middling", 0.2, 10.0)]
    view = serving_view(points, "quick", "NDCG@10")
    places = {served.name: (across, up) for served, across, up in view.points}
    assert places["quick"][0] < places["middling"][0] < places["slow"][0]
    # Powers of ten are equally far apart.
    gaps = places["middling"][0] - places["quick"][0], places["slow"][0] - places["middling"][0]
    assert abs(gaps[0] - gaps[1]) < 0.01
    assert places["middling"][1] < places["quick"][1] < places["slow"][1]
    line = [tuple(map(float, pair.split(","))) for pair in view.frontier.split()]
    assert line == [(places[name][0], round(100 - places[name][1], 3)) for name in ("quick", "slow")]


def test_times_too_short_to_measure_have_a_place() -> None:
    view = serving_view([point("a", 0.5, 0.0)], "a", "MAP")
    ((_, across, up),) = view.points
    assert 0.0 <= across <= 100.0
    assert 0.0 <= up <= 100.0
