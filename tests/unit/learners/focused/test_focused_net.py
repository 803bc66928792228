"""FocusedNet: its truth, its ends, and the choice of β."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from gradrank.data import RankingData
from gradrank.data.artificial import make_splits
from gradrank.data.topk import top_k_labels
from gradrank.errors import TrainingError
from gradrank.learners import Step
from gradrank.learners.focused.beta_path import BETA_GRID, BetaPath
from gradrank.learners.focused.focused_net import FocusedNet
from gradrank.objectives.focused import Focused

pytest.importorskip("torch")
QUICK = {"k": 5, "hidden_layer_sizes": 0, "epochs": 2, "batch_size": 8}


@pytest.fixture(scope="module")
def data() -> dict[str, RankingData]:
    return make_splits(30, n_docs=12, n_features=4, random_state=2)


def test_grades_become_a_seeded_truth(data: dict[str, RankingData]) -> None:
    graded = data["train"]
    truth = graded.with_label("label", top_k_labels(graded.label(), graded.indptr, 5, random_state=3))
    made, given = (clone(FocusedNet(**QUICK, random_state=3)).fit(train) for train in (graded, truth))
    assert np.array_equal(made.predict(graded), given.predict(graded))
    assert made.ranker_.training["objective"] == str(Focused(5, 0.5))


def test_beta_is_chosen_on_validation_data(data: dict[str, RankingData]) -> None:
    told: list[Step] = []
    model = FocusedNet(**QUICK, beta="auto", callbacks=(told.append,)).fit(data["train"], valid=data["vali"])
    path = model.ranker_.training["paths"]["beta"]
    assert path["beta"] == list(BETA_GRID)
    assert model.beta_ == BETA_GRID[int(np.argmax(path["KappaNDCG@5"]))]
    assert told[-1].number == told[-1].total == 2 * len(BETA_GRID)
    alone = FocusedNet(**QUICK, beta=model.beta_).fit(data["train"], valid=data["vali"])
    assert np.array_equal(alone.predict(data["test"]), model.predict(data["test"]))
    with pytest.raises(TrainingError, match="beta is auto"):
        FocusedNet(**QUICK, beta="auto").fit(data["train"])


def test_parameters_out_of_range(data: dict[str, RankingData]) -> None:
    for given in ({"k": 0}, {"beta": 1.5}, {"beta": "best"}):
        with pytest.raises(TrainingError, match=f"{next(iter(given))} is"):
            FocusedNet(**{**QUICK, **given}).fit(data["train"])


def test_path_that_is_cut_short_keeps_the_best_so_far() -> None:
    def train(beta: float, _callbacks: object) -> float:
        if beta > 0.1:
            raise KeyboardInterrupt
        return beta

    path = BetaPath[float]((), 1, value=lambda found: found, interrupted=lambda found: False)
    assert path.best(train, BETA_GRID) == (0.1, 0.1)
    assert path.interrupted
    assert path.tried == path.values == [0.0, 0.05, 0.1]
    with pytest.raises(KeyboardInterrupt):
        BetaPath[float]((), 1, value=float, interrupted=bool).best(train, (0.5,))
