"""Niu's tables and figures on small data; cells that are kept; folders of data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gradrank.data import RankingData
from gradrank.data.formats.registry import write_data
from gradrank.data.splits import concatenate
from gradrank.data.topk import is_top_k
from gradrank.errors import DataError
from gradrank.experiments import recipe, run
from gradrank.experiments.cells import run_cells
from gradrank.experiments.claims import verdicts
from gradrank.experiments.folders import Fold, read_folds, read_splits
from gradrank.experiments.niu import ORDER, RANKERS, _cross_validated, _maximum_inside, _truths, _verdicts
from gradrank.experiments.recipe import Run
from gradrank.learners import FocusedSVM
from gradrank.measures import KappaNDCG

SMALL = replace(recipe("niu-4").tiny, n_jobs=1)
QUICK = replace(SMALL, beta=0.5, rankers=("SVMmap", "RankSVM", "FocusedSVM"))


def test_table_4_has_all_rankers_on_both_truths() -> None:
    result = run("niu-4", scale=SMALL)
    assert [table.title for table in result.tables] == [
        "graded labels: means of 5 folds",
        "topk labels: means of 5 folds",
        "β chosen by cross-validation",
    ]
    for table, name in zip(result.tables[:2], ("NDCG", "KappaNDCG"), strict=True):
        assert [row[0] for row in table.rows] == list(RANKERS)
        assert len(table.rows) == 11
        assert [column.name for column in table.columns][1:5] == [*(f"{name}@{k}" for k in (1, 2, 3)), (
            "ERR(top=query)" if name == "NDCG" else "KappaERR")]  # fmt: skip
        assert all(0.0 < value < 1.0 for row in table.rows for value in row[1:5])
    assert len(result.notes) == 12


def test_trainings_that_are_done_are_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    first = run("niu-4", scale=QUICK, out=tmp_path, say=said.append)
    assert len(list((tmp_path / "cells").iterdir())) == 2 * 3 * 5
    (tmp_path / "cells" / sorted(file.name for file in (tmp_path / "cells").iterdir())[0]).unlink()
    trained = []
    from gradrank.experiments import cells

    whole = cells.run_cell
    monkeypatch.setattr(cells, "run_cell", lambda cell, fold: (trained.append(cell.name), whole(cell, fold))[1])
    again = run("niu-4", scale=QUICK, out=tmp_path, say=said.append)
    assert len(trained) == 1
    assert again == first
    assert "29 of 30 trainings are kept from before" in said
    # Other settings are other trainings.
    run("niu-4", scale=replace(QUICK, C=2.0, truths=("graded",)), out=tmp_path)
    assert len(trained) == 1 + 15


def test_figure_draws_over_beta() -> None:
    result = run("niu-fig1", scale=replace(recipe("niu-fig1").tiny, truths=("topk",)))
    (table,) = result.tables
    assert [row[0] for row in table.rows] == [0.0, 0.5, 1.0]
    assert [column.name for column in table.columns] == ["β", "KappaNDCG@3", "KappaERR"]
    assert "is highest at β" in result.notes[0]
    # Folds have as many queries each, so that means of folds are means of queries.
    at = {row[0]: row[1] for row in table.rows}
    assert [claim.estimate().mean for claim in result.claims] == pytest.approx([at[0.5] - at[0.0], at[0.5] - at[1.0]])


def test_a_curve_that_falls_from_the_start_has_no_maximum_inside() -> None:
    chance = np.random.default_rng(3).normal(0.0, 0.01, (4, 50))
    means = {"falls slowly, then fast": (0.5, 0.49, 0.48, 0.2), "rises and falls": (0.5, 0.55, 0.52, 0.2)}
    found = {}
    for curve, values in means.items():
        by_beta = {
            beta: {"MAP": mean + chance[k]} for k, (beta, mean) in enumerate(zip((0, 0.3, 0.5, 1), values, strict=True))
        }
        found[curve] = [word for word, _ in verdicts(_maximum_inside("A", "MAP", by_beta))]
    assert found == {"falls slowly, then fast": ["does not hold", "holds"], "rises and falls": ["holds", "holds"]}


def test_a_query_has_one_truth_in_all_folds() -> None:
    folds = [Fold(*(without_order(data) for data in fold)) for fold in SMALL.artificial_data()]
    truths = _truths(SMALL, folds)["topk"]
    seen: dict[str, bytes] = {}
    for fold, graded in zip(truths, folds, strict=True):
        for data, before in zip(fold, graded, strict=True):
            assert is_top_k(data.label(), data.indptr)
            for query, qid in enumerate(data.qid):
                labels = data.take_queries([query]).label()
                assert seen.setdefault(qid, labels.tobytes()) == labels.tobytes()
                grades = before.take_queries([query]).label()
                assert grades[labels > 0].min() >= grades[labels == 0].max()
    # A truth that is given stays as it is.
    assert _truths(SMALL, truths)["topk"][0].train is truths[0].train


def without_order(data: RankingData) -> RankingData:
    return replace(data, labels={"label": data.label()})


def test_artificial_data_has_its_truth_from_an_order() -> None:
    (fold, *_), (truth, *_) = SMALL.artificial_data(), _truths(SMALL, SMALL.artificial_data())["topk"]
    for query in range(fold.test.n_queries):
        order, labels = fold.test.take_queries([query]).label(ORDER), truth.test.take_queries([query]).label()
        best = np.argsort(-order)[: SMALL.k]
        assert labels[best].tolist() == [3.0, 2.0, 1.0]
        assert labels.sum() == 6.0
    # Without errors the order is that of the relevance, which a better and better ranker finds.
    sure, unsure = (replace(QUICK, rankers=("RankSVM",), order_noise=noise) for noise in (0.0, 3.0))
    values = [run("niu-4", scale=scale).tables[1].rows[0][3] for scale in (sure, unsure)]
    assert values[0] > values[1] + 0.1


def test_a_folder_with_a_total_order_gives_the_truth(tmp_path: Path) -> None:
    folds = [Fold(*(without_order(data) for data in fold)) for fold in SMALL.artificial_data()]
    rng = np.random.default_rng(0)
    for name, data in zip(("train", "vali", "test"), folds[0], strict=True):
        # Listed in another order of documents, and one of them is missing.
        places = np.concatenate([rng.permutation(int(size)) for size in data.sizes]).astype(np.float32)
        listed = data.with_label("label", places)
        write_data(listed.take_queries(np.arange(listed.n_queries)[::-1]), tmp_path / f"{name}.txt")
        if name == "train":
            kept = places
    truth = _truths(replace(SMALL, lists=str(tmp_path)), folds)["topk"][0].train
    size = int(truth.sizes[0])
    best = np.argsort(-kept[:size])[: SMALL.k]
    assert truth.label()[:size][best].tolist() == [3.0, 2.0, 1.0]
    assert is_top_k(truth.label(), truth.indptr)
    strange = [Fold(*(replace(data, docid=None) for data in folds[0]))]
    with pytest.raises(DataError, match="documents need ids"):
        _truths(replace(SMALL, lists=str(tmp_path)), strange)


def test_beta_is_chosen_by_cross_validation_without_test_data() -> None:
    scale = replace(SMALL, rankers=("RankSVM", "FocusedSVM", "SVMmap"), truths=("topk",), cv_betas=(0.0, 0.4, 1.0))
    folds = _truths(scale, scale.artificial_data())
    chosen = _cross_validated(scale, folds, Run())
    for number, fold in enumerate(folds["topk"]):
        whole = concatenate([fold.train, fold.valid])
        halves = np.array_split(np.arange(whole.n_queries), 2)
        means = []
        for beta in scale.cv_betas:
            values = []
            for mine, other in (halves, halves[::-1]):
                learner = FocusedSVM(k=3, C=1.0, beta=beta, measure="KappaNDCG@3", n_jobs=1)
                learner.fit(whole.take_queries(mine), valid=whole.take_queries(other))
                values.append(
                    KappaNDCG(3).values(learner.predict(whole.take_queries(other)), whole.take_queries(other))
                )
            means.append(np.concatenate(values).mean())
        assert chosen["FocusedSVM", "topk", number] == scale.cv_betas[int(np.argmax(means))]
    # What the table shows is the training with that value.
    result = run("niu-4", scale=scale)
    assert result.tables[-1].rows == (
        ("FocusedSVM", "topk", ", ".join(f"{chosen['FocusedSVM', 'topk', fold]:g}" for fold in range(5))),
    )


def test_significance_is_marked() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(200)
    values = {
        "FocusedSVM": {"M": base + 0.1 + 0.01 * rng.random(200)},
        "SVMmap": {"M": base},
        "RankSVM": {"M": base + 0.1 + 0.01 * rng.random(200)},
    }
    verdicts, notes = _verdicts(values, "M")
    assert verdicts == {"FocusedSVM": "▲SVMmap ·RankSVM", "SVMmap": "", "RankSVM": ""}
    assert notes[0].startswith("FocusedSVM is significantly better than SVMmap by M: +0.10")


def test_cells_side_by_side_are_the_same() -> None:
    folds = {"graded": SMALL.artificial_data()}
    cells = [replace(QUICK.cell("x", "RankSVM", "graded", fold, 0.5), measures=("NDCG@3", "MAP")) for fold in (0, 1)]
    one, two = run_cells(cells, folds), run_cells(cells, folds, jobs=2)
    for cell in cells:
        assert one[cell].keys() == two[cell].keys()
        assert all(np.array_equal(one[cell][name], two[cell][name]) for name in ("NDCG@3", "MAP"))


@pytest.mark.parametrize("damage", ["cut", "empty", "no archive", "other arrays", "lists of lists"])
def test_a_broken_cell_is_trained_again(damage: str, tmp_path: Path) -> None:
    folds = {"graded": SMALL.artificial_data()}
    cells = [replace(QUICK.cell("x", "RankSVM", "graded", 0, 0.5), measures=("NDCG@3", "MAP"))]
    first = run_cells(cells, folds, out=tmp_path)
    (kept,) = (tmp_path / "cells").iterdir()
    whole = kept.read_bytes()
    if damage == "other arrays":
        np.savez(kept, MAP=np.zeros(3))
    elif damage == "lists of lists":
        np.savez(kept, **{"MAP": np.zeros((3, 1)), "NDCG@3": np.zeros((3, 1))})
    else:
        kept.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "no archive": b"[1, 2]"}[damage])
    said: list[str] = []
    again = run_cells(cells, folds, out=tmp_path, say=said.append)
    assert "a kept training is not used" in said[0]
    assert kept.read_bytes() == whole
    for name in cells[0].measures:
        np.testing.assert_array_equal(again[cells[0]][name], first[cells[0]][name])


def test_a_ranker_that_does_not_exist() -> None:
    with pytest.raises(DataError, match="rankers has 'RankSVN', expected some of SVMmap, RankSVM"):
        run("niu-4", scale=replace(SMALL, rankers=("RankSVN",)))


# ---------------------------------------------------------------------- folders
def part(number: int) -> RankingData:
    return RankingData.from_arrays([[0.5], [1.0]], [0, 1], qid=[number, number])


def test_folders_of_parts_folds_and_sets(tmp_path: Path) -> None:
    for number in range(5):
        write_data(part(number), tmp_path / f"S{number + 1}.txt.gz")
    folds = read_folds(tmp_path)
    assert len(folds) == 5
    assert [list(data.qid) for data in folds[1]] == [["1", "2", "3"], ["4"], ["0"]]
    nested = tmp_path / "nested"
    for fold in ("Fold1", "Fold2"):
        (nested / fold).mkdir(parents=True)
        for number, name in enumerate(("train", "vali", "test")):
            write_data(part(number), nested / fold / f"{name}.txt")
    assert [list(data.qid) for data in read_folds(nested)[1]] == [["0"], ["1"], ["2"]]
    assert isinstance(read_folds(nested / "Fold1")[0], Fold)
    assert sorted(read_splits(nested / "Fold1")) == ["test", "train", "vali"]
    (nested / "Fold2" / "vali.txt").unlink()
    with pytest.raises(DataError, match="Fold2: holds no file vali or valid"):
        read_folds(nested)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no data"):
        read_folds(tmp_path / "empty")
    with pytest.raises(DataError, match="is no folder"):
        read_folds(tmp_path / "missing")


def test_err_has_one_top_grade_for_all_queries_if_told() -> None:
    small = replace(SMALL, rankers=("RankSVM",))
    own, common = (run("niu-4", scale=replace(small, top=top)).tables for top in ("query", 7.0))
    heads = [[table.columns[-2].name for table in tables] for tables in (own, common)]
    assert heads == [["ERR(top=query)", "KappaERR"], ["ERR(top=7)", "KappaERR"]]
    # Grades end at 4: under a top grade of 7 all of them are far from certain to satisfy.
    assert common[0].rows[0][-2] < 0.25 * own[0].rows[0][-2]
    assert common[1].rows == own[1].rows
    assert common[0].rows[0][1:-2] == own[0].rows[0][1:-2]
