"""Sweeps over the weights of tiers: what is trained, what is kept, what is chosen."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gradrank.data.artificial import make_splits
from gradrank.errors import FewQueriesWarning, GradrankError
from gradrank.learners import LambdaMART
from gradrank.measures import CNDCG, NDCG, measure_values
from gradrank.objectives import parse_objective
from gradrank.report.tradeoff import parallel_figure
from gradrank.selection.sweep import Sweep, sweep
from gradrank.selection.weights import named_shares, reweighted, spread_weights

DATA = make_splits(60, n_docs=10, n_features=5, random_state=3, clicks=True)
WEIGHTS = [0.2, 0.6]
# The data is small so that the tests are quick; one test is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore::gradrank.errors.FewQueriesWarning")


def learner(**options: object) -> LambdaMART:
    return LambdaMART(
        "Tiered(NDCG, CNDCG)",
        measure="Graded(NDCG@3, CNDCG@3)",
        n_estimators=8,
        min_child_samples=5,
        n_jobs=1,
        **options,
    )  # type: ignore[arg-type]


def run(**options: object) -> Sweep:
    return sweep(learner(), DATA["train"], DATA["vali"], WEIGHTS, test_data=DATA["test"], **options)  # type: ignore[arg-type]


def test_members_are_what_the_learner_trains_alone() -> None:
    found = run()
    assert found.weights == {"w=0": (0.0,), "w=0.2": (0.2,), "w=0.6": (0.6,)}
    for name, (weight,) in found.weights.items():
        alone = LambdaMART(f"Tiered(NDCG, CNDCG, weight={weight})", measure="Graded(NDCG@3, CNDCG@3)", n_estimators=8,
                           min_child_samples=5, n_jobs=1).fit(DATA["train"], valid=DATA["vali"])  # fmt: skip
        assert found.rankers[name].to_dict()["payload"] == alone.ranker_.to_dict()["payload"]
        scores = alone.ranker_.predict(DATA["test"])
        values = measure_values([NDCG(3), CNDCG(3)], scores, DATA["test"])
        for measure in (NDCG(3), CNDCG(3)):
            mean = found.evaluations["test"].summary(name, measure).mean
            assert mean == pytest.approx(np.nanmean(values[measure]))
    assert found.ranker is found.rankers[found.choice.system]


def test_what_is_shown() -> None:
    found = run(level=0.1)
    table = found.table("test")
    assert [row[0] for row in table.rows] == ["0", "0.2", "0.6"]
    assert table.rows[0][3:5] == (None, None)
    comparison = found.comparison("test")
    assert comparison is not None
    row = next(row for row in comparison.rows if row.system == "w=0.6" and row.measure == CNDCG(3))
    assert table.records()[2]["Δ CNDCG@3"] == row.test.difference
    assert table.records()[2]["p CNDCG@3"] == row.test.p
    assert [row[-1] for row in table.rows].count("chosen") == 1
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["choice"]["system"] == found.choice.system
    assert set(plain["data"]) == {"valid", "test"}


def test_efficient_models_by_definition() -> None:
    found = run()
    means = {name: [found.evaluations["valid"].summary(name, m).mean for m in (NDCG(3), CNDCG(3))]
             for name in found.rankers}  # fmt: skip
    for name, own in means.items():
        beaten = any(all(a >= b for a, b in zip(other, own, strict=True)) and other != own for other in means.values())
        assert (name in found.efficient()) == (not beaten)


def test_a_choice_on_eight_queries_is_not_silent() -> None:
    few = DATA["vali"].take_queries(np.arange(8))
    with pytest.warns(FewQueriesWarning) as caught:
        sweep(learner(), DATA["train"], few, [0.05])
    (text,) = [str(warning.message) for warning in caught if warning.category is FewQueriesWarning]
    assert text.startswith("the choice of the weight means little: on 8 queries a difference of NDCG@3 below 0.")
    assert text.endswith("cannot be told from chance; take more validation queries, or rule out harm with a margin")
    with pytest.warns(FewQueriesWarning, match="take more validation queries$"):
        sweep(learner(), DATA["train"], few, [0.05], margin=0.1)


class Trainings:
    """Counts the members that are trained; may stop before one."""

    def __init__(self, stop_at: str | None = None) -> None:
        self.names: list[str] = []
        self._stop_at = stop_at

    def __call__(self, name: str, member, train, valid) -> None:
        if name == self._stop_at:
            raise SystemExit(1)
        self.names.append(name)
        member.fit(train, valid=valid)


@pytest.mark.filterwarnings("ignore::gradrank.errors.FewQueriesWarning")
def test_a_killed_sweep_goes_on(tmp_path) -> None:
    killed = Trainings(stop_at="w=0.6")
    with pytest.raises(SystemExit):
        run(folder=tmp_path / "s", fit=killed)
    again = Trainings()
    found = run(folder=tmp_path / "s", fit=again)
    assert (killed.names, again.names) == (["w=0", "w=0.2"], ["w=0.6"])
    whole = run()
    assert found.choice == whole.choice
    for name in whole.rankers:
        assert found.rankers[name].to_dict()["payload"] == whole.rankers[name].to_dict()["payload"]
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["w=0.2.json", "w=0.6.json", "w=0.json"]
    more = Trainings()
    sweep(learner(), DATA["train"], DATA["vali"], [*WEIGHTS, 0.9], folder=tmp_path / "s", fit=more)
    assert more.names == ["w=0.9"]


def test_models_of_another_sweep_are_not_taken(tmp_path) -> None:
    run(folder=tmp_path)
    with pytest.raises(GradrankError, match=r"w=0\.json: belongs to another sweep \(num_leaves differ\)"):
        sweep(learner(num_leaves=4), DATA["train"], DATA["vali"], WEIGHTS, folder=tmp_path)
    with pytest.raises(GradrankError, match=r"belongs to another sweep \(data differ\)"):
        sweep(learner(), DATA["train"], DATA["test"], WEIGHTS, folder=tmp_path)
    same = Trainings()
    sweep(
        learner().set_params(n_jobs=2, diagnostics=2), DATA["train"], DATA["vali"], WEIGHTS, folder=tmp_path, fit=same
    )
    assert same.names == []


def test_an_interrupted_member_is_not_taken_for_finished(tmp_path) -> None:
    def stop(step) -> None:
        if step.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(learner(callbacks=(stop,)), DATA["train"], DATA["vali"], WEIGHTS, folder=tmp_path)
    assert not list(tmp_path.glob("*.json"))


def test_a_state_in_the_middle_of_a_member_is_continued(tmp_path) -> None:
    class Stop(Exception):
        pass

    def stop(step) -> None:
        if step.number == 6:
            raise Stop

    with pytest.raises(Stop):
        sweep(learner(callbacks=(stop,), checkpoint_every=4), DATA["train"], DATA["vali"], WEIGHTS, folder=tmp_path)
    assert (tmp_path / "w=0.json.checkpoint").exists()
    steps: list[int] = []
    sweep(learner(callbacks=(lambda step: steps.append(step.number),), checkpoint_every=4), DATA["train"], DATA["vali"],
          [], folder=tmp_path)  # fmt: skip
    assert steps == [5, 6, 7, 8]
    assert not (tmp_path / "w=0.json.checkpoint").exists()


def test_weights_are_shares_of_the_lower_tiers() -> None:
    three = parse_objective("Tiered(NDCG, CNDCG, NDCG(label=fresh), weights=[1, 0, 0])")
    assert reweighted(three, 0.5).weights == (0.5, 0.25, 0.25)
    assert list(named_shares(three, [1.0, 0.0, 0.3])) == ["w=0", "w=0.3", "w=1"]
    assert named_shares(three, [(0.2, 0.1), (0.0, 0.0)]) == {"w=0": (0.0, 0.0), "w=0.2,0.1": (0.2, 0.1)}
    with pytest.raises(GradrankError, match="expected one number, or 2"):
        named_shares(three, [(0.2, 0.1, 0.1)])


def test_spread_weights_fill_the_simplex_evenly() -> None:
    points = np.array(spread_weights(4, 256, most=0.8, random_state=5))
    assert points.shape == (256, 3)
    assert (points >= 0).all()
    assert (points.sum(axis=1) <= 0.8 + 1e-3).all()
    # Uniform on the simplex of four parts: each has a quarter of the whole, with the Dirichlet distribution's variance.
    np.testing.assert_allclose(points.mean(axis=0), 0.2, atol=0.01)
    np.testing.assert_allclose(points.var(axis=0), 0.8**2 * 3 / (16 * 5), rtol=0.15)
    assert np.array_equal(points[:40], spread_weights(4, 40, most=0.8, random_state=5))


def test_three_tiers_with_missing_labels_are_swept() -> None:
    parts = {}
    for name, data in DATA.items():
        rng = np.random.default_rng(len(name))
        fresh = np.where(rng.random(data.n_docs) < 0.3, np.nan, (data.X[:, 0] > 0).astype(float) + 1)
        parts[name] = data.with_label("fresh", fresh)
    three = learner().set_params(objective="Tiered(NDCG, CNDCG, NDCG(label=fresh))",
                                 measure="Graded(NDCG@3, CNDCG@3, NDCG(label=fresh)@3)")  # fmt: skip
    found = sweep(three, parts["train"], parts["vali"], spread_weights(3, 3, most=0.9), test_data=parts["test"])
    assert len(found.rankers) == 4
    fresh = next(measure for measure in found.evaluations["test"].measures if measure.label == "fresh")
    means = {name: found.evaluations["test"].summary(name, fresh).mean for name in found.rankers}
    most = max(found.weights, key=lambda name: found.weights[name][1])
    # The more weight a tier has, the better it is served.
    assert found.weights[most][1] > 0.2
    assert means[most] > means["w=0"]
    figure = parallel_figure(found, "test")
    lines = [line for line in figure.axes[0].get_lines() if line.get_label() in found.rankers]
    assert len(lines) == 4


def test_one_weight_has_nothing_to_be_compared_with() -> None:
    found = sweep(learner(), DATA["train"], DATA["vali"], [0.0])
    assert found.comparison() is None
    assert found.choice.system == "w=0"
    assert len(found.table().rows) == 1


@pytest.mark.parametrize("weights", [[1.5], [-0.1], [float("nan")]])
def test_wrong_weights(weights: list[float]) -> None:
    with pytest.raises(GradrankError, match="expected numbers from 0 to 1"):
        sweep(learner(), DATA["train"], DATA["vali"], weights)


def test_objectives_without_tiers_are_refused() -> None:
    with pytest.raises(GradrankError, match="expected tiers"):
        sweep(LambdaMART("NDCG"), DATA["train"], DATA["vali"])


def test_a_folder_that_cannot_be_made(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GradrankError, match="cannot be made into a folder"):
        run(folder=tmp_path / "file")
