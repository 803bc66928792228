"""Rankings side by side, segments and effects on the page, beside what was given."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gradrank import Texts, compare, evaluate
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError
from gradrank.models.linear import LinearRanker
from gradrank.models.nets.net import NetRanker
from gradrank.models.systems import Documents
from gradrank.report import render_report
from gradrank.report.effects import effects
from gradrank.report.results import ChangedQuery
from gradrank.report.side_by_side import Rankings, side_by_side
from tests.unit.report.test_page import DATE, Page

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\"'"


@pytest.fixture(scope="module")
def data() -> RankingData:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3)).astype(np.float32)
    labels = np.clip(np.round(X[:, 0] + 1), 0, 3)
    return RankingData.from_arrays(
        X, labels, qid=np.arange(240) % 20, docid=[f"d{row}" for row in range(240)], feature_names=["a", "b", "c"]
    )


def test_places_and_moves() -> None:
    data = RankingData.from_arrays(
        np.zeros((4, 1)), [0, 1, 2, np.nan], qid=["q", "q", "q", "q"], docid=["w", "x", "y", "z"]
    )
    scores = {"old": np.array([4.0, 3.0, 2.0, 1.0]), "new": np.array([1.0, 2.0, 3.0, -np.inf])}
    rankings = Rankings.of(Documents.of(data), scores, Texts({"q": "words"}, {"x": "a text"}))
    (view,) = side_by_side(rankings, [ChangedQuery("q", 0.2, 0.9)], "old", "new")
    assert view.text == "words"
    assert [(item.rank, item.name, item.label, item.change, item.only_here) for item in view.before] == [
        (1, "w", "0", -2, False),
        (2, "x", "1", 0, False),
        (3, "y", "2", 2, False),
        (4, "z", "–", None, True),  # the other system did not retrieve it
    ]
    assert [(item.rank, item.name, item.text, item.change) for item in view.after] == [
        (1, "y", None, 2),
        (2, "x", "a text", 0),
        (3, "w", None, -2),
    ]
    with pytest.raises(DataError, match="no query 'r'"):
        side_by_side(rankings, [ChangedQuery("r", 0.2, 0.9)], "old", "new")
    with pytest.raises(DataError, match="belong to one data set"):
        Rankings.of(None, scores, None)


def test_long_texts_are_cut_and_rows_stand_for_ids() -> None:
    data = RankingData.from_arrays(np.zeros((3, 1)), qid=["b", "a", "b"])
    rankings = Rankings.of(
        Documents.of(data), {"s": [1.0, 2.0, 3.0], "t": [3.0, 2.0, 1.0]}, Texts(rows=["x" * 999] * 3)
    )
    (view,) = side_by_side(rankings, [ChangedQuery("b", 0.0, 1.0)], "s", "t")
    assert [item.name for item in view.before] == ["row 3", "row 1"]
    assert {len(item.text or "") for item in view.before} == {240}


def page_of(data: RankingData, **more) -> str:
    rng = np.random.default_rng(1)
    systems = {"old": rng.normal(size=240), "new": LinearRanker([1.0, 0.1, 0.0], feature_names=["a", "b", "c"])}
    return render_report(data=data, systems=systems, measures="NDCG@5", date=DATE, **more)


def test_the_page_shows_rankings_segments_and_effects(data) -> None:
    texts = Texts({str(q): "one" if q < 10 else "two words" for q in range(20)}, {"d0": "the first document"})
    text = page_of(data, texts=texts, segments={"market": ["de", "fr"] * 10})
    page = Page(text)
    assert len([1 for tag, given in page.tags if tag == "ol" and given.get("class") == "ranking"]) >= 2
    by_market = page.table("market (queries)")
    assert [row[0] for row in by_market[1:]] == ["de (10)", "fr (10)"]
    assert [row[0] for row in page.table("query length (queries)")[1:]] == ["1 word (10)", "2 words (10)"]
    losses = page.table("Loss")
    assert [row[0] for row in losses[1:]] == ["a", "b"]
    assert losses[1][-1] == "helps"
    assert any("Mean score by a from" in (given.get("aria-label") or "") for _, given in page.tags)
    assert 'href="#segments"' in text


def test_nothing_of_it_without_being_asked(data) -> None:
    result = evaluate(data, {"old": np.arange(240.0), "new": data.X[:, 0]}, "NDCG@5")
    text = render_report(evaluation=result, comparison=compare(result), data={"test": data}, date=DATE)
    assert "Rankings side by side" not in text
    assert "Segments" not in text
    assert "What single features do" not in text
    assert "What single features do" not in page_of(data, effects=0)


def test_hostile_texts_and_segments_stay_text(data) -> None:
    texts = Texts(dict.fromkeys(map(str, range(20)), HOSTILE), {f"d{row}": HOSTILE for row in range(240)})
    text = page_of(data, texts=texts, segments={HOSTILE: [HOSTILE, "x\x00"] * 10}, title=HOSTILE)
    page = Page(text)
    assert [given.get("type") for tag, given in page.tags if tag == "script"] == ["application/json", None]
    assert not [tag for tag, _ in page.tags if tag in ("img", "iframe", "object")]
    assert not [name for _, given in page.tags for name in given if name.startswith("on")]
    assert "\x00" not in text
    assert sum(HOSTILE in summary for summary in page.texts["summary"]) >= 2


def test_a_model_that_does_not_fit_the_data_is_noted(data) -> None:
    result = evaluate(data, {"old": np.arange(240.0), "new": data.X[:, 0]}, "NDCG@5")
    text = render_report(
        evaluation=result,
        models={"other": LinearRanker([1.0], feature_names=["age"])},
        data={"test": data},
        effects=3,
        date=DATE,
    )
    assert re.search(r"other: no effects of single features: .*age", text)


def test_nets_show_the_features_that_move_them_most(data) -> None:
    net = NetRanker(
        [([[0.1, 2.0, 0.0], [0.0, 1.0, 0.0]], [0.0, 0.0]), ([[1.0, 1.0]], [0.0])], feature_names=list("abc")
    )
    found = effects(net, Documents.of(data), evaluate(data, {"n": net}, "NDCG@5").measures[0], 1)
    assert [loss.feature for loss in found.losses] == ["b"]
    assert found.queries == 20
