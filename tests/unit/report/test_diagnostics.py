"""Figures of trainings: the numbers drawn are those recorded."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from gradrank.data.artificial import make_splits
from gradrank.errors import GradrankError
from gradrank.learners import LambdaMART
from gradrank.objectives import RankNet, Sigmoid, parse_objective
from gradrank.report.diagnostics import diagnostic_sections, diagnostic_table, force_figure, schedule_figure
from gradrank.report.figures import Section, new_figure, write_figure, write_folder, write_page
from gradrank.report.tradeoff import tradeoff_figure, write_tradeoff
from gradrank.selection.sweep import sweep

DATA = make_splits(40, n_docs=10, n_features=5, random_state=3, clicks=True)


def trained(objective: str, **options: object) -> dict[str, object]:
    learner = LambdaMART(objective, n_estimators=6, min_child_samples=5, n_jobs=1, **options)  # type: ignore[arg-type]
    return dict(learner.fit(DATA["train"], valid=DATA["vali"]).ranker_.training)


def test_what_a_graded_training_tells() -> None:
    training = trained("Tiered(NDCG@3, CNDCG@3)", diagnostics=2)
    sections = {section.name: section for section in diagnostic_sections(training)}
    assert list(sections) == ["measures", "agreement", "gradient_shares", "top_labels", "rank_changes", "forces"]
    found = training["diagnostics"]
    (axis,) = sections["top_labels"].figure.axes
    assert [line.get_label() for line in axis.lines] == [f"label {name}" for name in found["top_labels"]]
    np.testing.assert_array_equal(axis.lines[0].get_xdata(), found["steps"])
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), found["top_labels"]["0"])
    changes = sections["rank_changes"].figure.axes[0].lines
    assert changes[0].get_ydata().tolist() == found["rank_changes"]["all"]
    valid = next(line for line in changes if line.get_label() == "NDCG@3, valid")
    assert valid.get_ydata().tolist() == training["curves"]["valid"]["NDCG@3"]


def test_a_schedule_and_a_training_without_diagnostics() -> None:
    training = trained("Scheduled(NDCG, Lambda(NDCG, cost=sigmoid, mu=1), eta=0.1)")
    sections = {section.name: section for section in diagnostic_sections(training)}
    assert list(sections) == ["measures", "forces", "weights"]
    line = sections["weights"].figure.axes[0].lines[0]
    assert line.get_xdata().tolist() == list(range(7))
    np.testing.assert_allclose(line.get_ydata(), 0.1 + 0.1 * np.arange(7))
    labels = [line.get_label() for line in sections["forces"].figure.axes[0].lines]
    assert labels == ["ranknet", "sigmoid, mu=1", "sigmoid"]
    assert diagnostic_sections({}) == []
    assert diagnostic_sections({"objective": "Gibberish("}) == []
    assert diagnostic_table({}).rows == ()


def test_two_parts_have_figures_of_their_own() -> None:
    training = trained("Scheduled(NDCG, Lambda(NDCG@3, cost=sigmoid))", diagnostics=3)
    names = [section.name for section in diagnostic_sections(training)]
    assert "gradient_shares" in names
    assert "gradient_shares2" in names


def test_forces_are_those_of_the_paper() -> None:
    ranknet, sigmoid = force_figure([RankNet(), Sigmoid()]).axes[0].lines
    for line, wanted in ((ranknet, lambda o: 1 / (1 + math.exp(o))),
                         (sigmoid, lambda o: math.exp(o) / (1 + math.exp(o)) ** 2)):  # fmt: skip
        np.testing.assert_allclose(line.get_ydata(), [wanted(o) for o in line.get_xdata()], atol=1e-12)


def test_weights_of_long_schedules_are_thinned() -> None:
    objective = parse_objective("Scheduled(NDCG, Lambda(NDCG, cost=sigmoid), schedule=exponential, eta=250)")
    line = schedule_figure([objective], 50_000).axes[0].lines[0]
    assert len(line.get_xdata()) <= 1001
    assert line.get_ydata()[-1] == 1.0


def test_the_same_page_is_the_same_file(tmp_path) -> None:
    training = trained("Tiered(NDCG@3, CNDCG@3)", diagnostics=2)
    for name in ("a.html", "b.html"):
        write_page(tmp_path / name, "A <b>title</b>", diagnostic_sections(training), ["a & b"])
    page = (tmp_path / "a.html").read_text()
    assert page == (tmp_path / "b.html").read_text()
    assert page.count("<svg") == 6
    assert "A &lt;b&gt;title&lt;/b&gt;" in page
    assert "a &amp; b" in page
    # Nothing is loaded from elsewhere.
    assert not re.search(r"""(?:src|href)="(?!#|data:)""", page)


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_folders_of_images(tmp_path, suffix: str) -> None:
    figure, _ = new_figure()
    written = write_folder(tmp_path / "f", [Section("One", "", figure, name="one"), Section("Words", "only")], suffix)
    assert [path.name for path in written] == [f"one{suffix}"]
    assert written[0].read_bytes()[:4] in (b"<?xm", b"\x89PNG", b"%PDF")


def test_wrong_places(tmp_path) -> None:
    figure, _ = new_figure()
    with pytest.raises(GradrankError, match=r"x\.gif: is no image"):
        write_figure(figure, tmp_path / "x.gif")
    (tmp_path / "file").write_text("")
    with pytest.raises(GradrankError, match="cannot be made into a folder"):
        write_folder(tmp_path / "file", [])


# ---------------------------------------------------------------- trade-off
def test_the_trade_off_shows_the_differences(tmp_path) -> None:
    # With these λ's the differences vary little enough for 20 validation queries.
    tiers = ", ".join(f"Lambda({measure}, normalize=log, gap=true)" for measure in ("NDCG@3", "CNDCG@3"))
    learner = LambdaMART(
        f"Tiered({tiers})", n_estimators=6, num_leaves=15, learning_rate=0.05, reg_lambda=0.0, min_child_samples=5,
        n_jobs=1,
    )  # fmt: skip
    found = sweep(learner, DATA["train"], DATA["vali"], [0.3, 0.7], test_data=DATA["test"])
    axis = tradeoff_figure(found, "test").axes[0]
    rows = {(row.system, str(row.measure)): row.test.difference for row in found.comparison("test").rows}
    dots = {tuple(line.get_xydata()[0]) for line in axis.lines if line.get_marker() in ("o", "D")}
    wanted = {(rows[name, "NDCG@3"], rows[name, "CNDCG@3"]) for name in ("w=0.3", "w=0.7")} | {(0.0, 0.0)}
    assert dots == wanted
    words = {text.get_text() for text in axis.texts}
    assert f"{found.choice.system.removeprefix('w=')} (chosen)" in words
    write_tradeoff(tmp_path / "t.html", found)
    page = (tmp_path / "t.html").read_text()
    assert found.choice.sentence() in page
    assert page.count("<svg") == 2
    write_tradeoff(tmp_path / "t.png", found)
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_a_sweep_of_one_weight_can_be_drawn() -> None:
    learner = LambdaMART("Tiered(NDCG@3, CNDCG@3)", n_estimators=2, min_child_samples=5, n_jobs=1)
    figure = tradeoff_figure(sweep(learner, DATA["train"], DATA["vali"], []))
    assert [text.get_text() for text in figure.axes[0].texts] == ["0 (chosen)"]
