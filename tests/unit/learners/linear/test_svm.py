"""RankSVM, SVMmap and FocusedSVM as learners."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from gradrank.data import RankingData
from gradrank.data.artificial import make_splits
from gradrank.data.topk import top_k_labels
from gradrank.errors import TrainingError
from gradrank.learners import RankSVM, Step, SVMmap
from gradrank.learners.focused.beta_path import BETA_GRID
from gradrank.learners.focused.focused_svm import FocusedSVM
from gradrank.learners.linear.pair_risk import PairOracle
from gradrank.learners.linear.svm import C_GRID
from gradrank.models.registry import load_ranker

SVMS = (RankSVM, SVMmap, FocusedSVM)


@pytest.fixture(scope="module")
def data() -> dict[str, RankingData]:
    return make_splits(60, n_docs=15, n_features=6, random_state=3)


def pair_differences(data: RankingData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Differences of all pairs, the number of pairs of each one's query, and the rows of the better documents."""
    rows, sizes, better = [], [], []
    for start, end in itertools.pairwise(data.indptr):
        labels = data.label()[start:end]
        u, v = np.nonzero(labels[:, None] > labels[None, :])
        rows.append(data.X[start:end][u].astype(float) - data.X[start:end][v])
        sizes.append(np.full(len(u), len(u)))
        better.append(start + u)
    return np.concatenate(rows), np.concatenate(sizes), np.concatenate(better)


@pytest.mark.parametrize(
    ("pairs", "c", "weighted"),
    [("sum", 0.001, False), ("sum", 0.01, False), ("mean", 0.1, False), ("mean", 1.0, False), ("mean", 0.1, True)],
)
def test_ranksvm_is_linear_svc_on_pair_differences(
    data: dict[str, RankingData], pairs: str, c: float, weighted: bool
) -> None:
    train = data["train"]
    differences, sizes, better = pair_differences(train)
    sign = np.where(np.arange(len(differences)) % 2 == 0, 1.0, -1.0)  # LinearSVC wants two classes
    weight = np.ones(len(sizes)) if pairs == "sum" else 1.0 / sizes
    # "mean" divides by a query's pairs: the same as weights of the pairs.
    own = None
    if weighted:
        own = np.random.default_rng(0).choice([0.2, 1.0, 5.0], train.n_docs)
        weight = weight * own[better]
        train = train.with_document_weight(own)
    peer = LinearSVC(C=c, loss="hinge", fit_intercept=False, tol=1e-6, max_iter=20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer.fit(differences * sign[:, None], sign, sample_weight=weight)
    w = peer.coef_.ravel()
    theirs = 0.5 * w @ w + c * (weight * np.maximum(0.0, 1.0 - differences @ w)).sum()
    ours = RankSVM(C=c, pairs=pairs, scaling="none", tol=1e-4).fit(train)  # type: ignore[arg-type]
    assert ours.solution_.objective == pytest.approx(theirs, rel=1e-3)
    # And it is the objective of the ranker that comes out.
    weights = ours.ranker_.weights  # type: ignore[attr-defined]
    oracle = PairOracle(train.label(), train.indptr, pairs=pairs, document_weight=own)  # type: ignore[arg-type]
    risk = oracle(train.X @ weights)[0][0]
    assert ours.solution_.objective == pytest.approx(0.5 * weights @ weights + c * risk, rel=1e-6)


@pytest.mark.parametrize("scaling", ["none", "minmax", "standard"])
@pytest.mark.parametrize("learner", SVMS)
def test_scaling_is_part_of_the_ranker(data: dict[str, RankingData], learner: type[RankSVM], scaling: str) -> None:
    train = data["train"]
    model = learner(C=0.1, scaling=scaling).fit(train)  # type: ignore[arg-type]
    assert model.score(data["test"]) > 0.55
    # A feature in other units makes another ranker with the same order, if features are scaled.
    moved = RankingData.from_arrays(train.X * 8.0 + 1.0, train.label(), qid=train.query_of_row())
    other = learner(C=0.1, scaling=scaling).fit(moved)  # type: ignore[arg-type]
    same = np.allclose(np.diff(model.predict(train)), np.diff(other.predict(moved)), atol=2e-2)
    assert same == (scaling != "none")


@pytest.mark.parametrize("learner", SVMS)
def test_models_save_and_threads_do_not_matter(
    data: dict[str, RankingData], learner: type[RankSVM], tmp_path: Path
) -> None:
    one = clone(learner(C=1.0, n_jobs=1)).fit(data["train"])
    two = learner(C=1.0, n_jobs=2).fit(data["train"])
    assert np.array_equal(one.predict(data["test"]), two.predict(data["test"]))
    one.ranker_.save(tmp_path / "model.json")
    loaded = load_ranker(tmp_path / "model.json")
    assert np.array_equal(loaded.predict(data["test"]), one.predict(data["test"]))
    assert loaded.training["learner"] == learner.__name__
    assert loaded.training["gap"] <= 1e-3
    assert loaded.training["best"] == loaded.training["grown"] == one.solution_.cuts


def test_c_is_chosen_on_validation_data(data: dict[str, RankingData]) -> None:
    told: list[Step] = []
    model = RankSVM(C="auto", callbacks=(told.append,)).fit(data["train"], valid=data["vali"])
    path = model.ranker_.training["paths"]["C"]
    assert path["C"] == list(C_GRID)
    assert C_GRID[int(np.argmax(path["NDCG@10"]))] == model.C_
    assert [step.number for step in told] == list(range(1, len(C_GRID) + 1))
    assert told[-1].values == {"valid": {"NDCG@10": path["NDCG@10"][-1]}}
    # The path's solution is that of a fit of its own, up to the tolerance.
    alone = RankSVM(C=model.C_).fit(data["train"])
    assert alone.solution_.objective == pytest.approx(model.solution_.objective, rel=2e-3)
    with pytest.raises(TrainingError, match="C is auto: it is chosen on validation data, and there is none"):
        RankSVM(C="auto").fit(data["train"])


def test_ends_of_focused_svm(data: dict[str, RankingData]) -> None:
    """β = 0 is RankSVM on T × F; β = 1 knows nothing of F."""
    graded = data["train"]
    labels = top_k_labels(graded.label(), graded.indptr, 5, random_state=1)
    train = graded.with_label("label", labels)
    pairs = RankSVM(C=0.5, tol=1e-4).fit(graded.with_label("label", labels > 0))
    ends = [FocusedSVM(k=5, beta=beta, C=0.5, tol=1e-4).fit(train) for beta in (0.0, 1.0)]
    assert ends[0].solution_.objective == pytest.approx(pairs.solution_.objective, rel=2e-4)
    rng = np.random.default_rng(0)
    rest = np.where((labels > 0)[:, None], graded.X, rng.permutation(graded.X))
    inside = RankingData(rest, train.indptr, train.labels, train.qid, feature_names=train.feature_names)
    scale = {"C": 0.5, "tol": 1e-4, "scaling": "none", "k": 5}
    shuffled, same = (FocusedSVM(beta=1.0, **scale).fit(given) for given in (inside, train))  # type: ignore[arg-type]
    assert shuffled.solution_.objective == pytest.approx(same.solution_.objective, rel=2e-4)


def test_graded_labels_become_a_seeded_top_k_truth(data: dict[str, RankingData]) -> None:
    graded = data["train"]
    truth = graded.with_label("label", top_k_labels(graded.label(), graded.indptr, 5, random_state=9))
    made, given, other = (
        FocusedSVM(k=5, random_state=9).fit(graded),
        FocusedSVM(k=5).fit(truth),
        FocusedSVM(k=5, random_state=8).fit(graded),
    )
    assert np.array_equal(made.predict(graded), given.predict(graded))
    assert not np.array_equal(made.predict(graded), other.predict(graded))


def test_beta_is_chosen_on_validation_data(data: dict[str, RankingData]) -> None:
    model = FocusedSVM(k=5, beta="auto").fit(data["train"], valid=data["vali"])
    path = model.ranker_.training["paths"]["beta"]
    assert path["beta"] == list(BETA_GRID)
    assert model.beta_ == BETA_GRID[int(np.argmax(path["KappaNDCG@5"]))]
    assert model.ranker_.training["chosen"] == {"beta": model.beta_}


def test_interrupted_path_keeps_the_best_so_far(data: dict[str, RankingData]) -> None:
    def stop(step: Step) -> None:
        if step.number == 4:
            raise KeyboardInterrupt

    model = RankSVM(C="auto", callbacks=(stop,)).fit(data["train"], valid=data["vali"])
    assert model.ranker_.training["interrupted"]
    assert model.ranker_.training["grown"] == 4
    single = RankSVM(C=100.0, tol=1e-6, callbacks=(stop,)).fit(data["train"])
    assert single.ranker_.training["interrupted"]
    assert single.solution_.cuts == 4


@pytest.mark.parametrize("learner", SVMS)
def test_parameters_out_of_range(data: dict[str, RankingData], learner: type[RankSVM]) -> None:
    wrong = [{"C": 0.0}, {"C": "best"}, {"C": True}, {"scaling": "log"}, {"tol": 0.0}, {"max_cuts": 0}]
    wrong += {RankSVM: [{"pairs": "all"}], SVMmap: [], FocusedSVM: [{"k": 0}, {"beta": 1.5}, {"beta": "x"}]}[learner]
    for given in wrong:
        with pytest.raises(TrainingError, match=f"{next(iter(given))} is"):
            learner(**given).fit(data["train"])  # type: ignore[arg-type]


def test_data_that_teaches_nothing() -> None:
    X = np.arange(4.0)[:, None]
    for learner in SVMS:
        with pytest.raises(TrainingError, match="one label only"):
            learner().fit(X, [1, 1, 0, 0], qid=[1, 1, 2, 2])
        with pytest.raises(TrainingError, match="judged"):
            learner().fit(X, [np.nan] * 4, qid=[1, 1, 2, 2])
    with pytest.raises(TrainingError, match="no query has both documents with label 3 or more"):
        SVMmap(rel=3.0).fit(X, [1, 2, 0, 0], qid=[1, 1, 2, 2])


def test_odd_queries_do_no_harm() -> None:
    """One document, all labels equal, unjudged documents, missing and constant features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[:, 1] = 2.0
    X[::7, 0] = np.nan
    labels = np.where(np.nan_to_num(X[:, 0]) > 0, 1.0, 0.0)
    labels[:20] = 0.0
    labels[30:33] = np.nan
    qid = np.concatenate(([0], np.repeat([1, 2, 3], [19, 20, 20])))
    for learner in SVMS:
        model = learner(C=1.0).fit(X, labels, qid=qid)
        assert np.isfinite(model.predict(X)).all()
        assert model.ranker_.weights[0] > 0  # type: ignore[attr-defined]
