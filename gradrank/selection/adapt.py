"""Adapting rankers of another domain to little data of one's own (Wu, Burges, Svore, Gao 2009, section 5.5).

Is a ranker of another market (the base) best left as it is, adapted, interpolated with a model of the own data, or
forgotten?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.combine import search_weights
from gradrank.data.interpret import takes_frames
from gradrank.data.ranking_data import RankingData
from gradrank.data.splits import letor_rotation
from gradrank.errors import DataError
from gradrank.evaluation.compare import ComparisonRow, compare
from gradrank.evaluation.evaluate import Evaluation, evaluate
from gradrank.evaluation.tables import Column, Table
from gradrank.learners.trees.lambdamart import LambdaMART
from gradrank.learners.trees.lambdasmart import LambdaSMART
from gradrank.measures import NDCG, AnyMeasure
from gradrank.models.ranker import Ranker
from gradrank.models.registry import under_names_of

OWN = "own data"
INTERPOLATION = "interpolation"
Said = Callable[[str], None]

# The paper's 20 leaves go with its 3,724 queries; fewer queries support fewer.
_MOST_LEAVES, _FEWEST_LEAVES = 20, 4
_MANY_QUERIES = 1000


def sensible_parameters(data: RankingData) -> dict[str, Any]:
    """Parameters of the trees that suit the amount of training data: the paper's for thousands of queries.

    Fewer queries get fewer leaves and a lower rate.

    >>> from gradrank.data.artificial import make_data
    >>> sensible_parameters(make_data(60, n_docs=10, n_features=3))
    {'n_estimators': 500, 'early_stopping_rounds': 100, 'num_leaves': 4, 'learning_rate': 0.05, 'min_child_samples': 5}
    """
    leaves = int(np.clip(round(np.sqrt(data.n_queries) / 3), _FEWEST_LEAVES, _MOST_LEAVES))
    return {
        "n_estimators": 500,
        "early_stopping_rounds": 100,
        "num_leaves": leaves,
        "learning_rate": 0.1 if data.n_queries >= _MANY_QUERIES else 0.05,
        "min_child_samples": int(np.clip(data.n_docs // 500, 5, 50)),
    }


def adapted(base: str) -> str:
    """Name of a base after adaptation.

    >>> adapted("english")
    'english, adapted'
    """
    return f"{base}, adapted"


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Every way to use the bases, evaluated on the same test queries: each query is tested once."""

    evaluation: Evaluation
    bases: tuple[str, ...]
    trees: Mapping[str, tuple[int, ...]]
    """Number of trees of each trained model in every fold."""
    weights: tuple[tuple[float, ...], ...]
    """Weights of the interpolation in every fold: those of the bases, then that of the model of the own data."""

    def table(self) -> Table:
        """Means of all systems (the paper's tables 4 and 5)."""
        return self.evaluation.table()

    def rows(self) -> list[tuple[str, ComparisonRow]]:
        """Each adapted base against the base, the own data's model and the interpolation, with the name of these."""
        found = []
        for base in self.bases:
            for other in (base, OWN, INTERPOLATION):
                pair = {name: self.evaluation.values[name] for name in (other, adapted(base))}
                two = Evaluation(self.evaluation.qids, self.evaluation.measures, pair, self.evaluation.facts)
                found += [(other, row) for row in compare(two, correction=None).rows]
        return found

    def comparison(self) -> Table:
        """The comparisons of :meth:`rows` as a table."""
        columns = (Column("system"), Column("against"), Column("measure"), Column("mean", "number"),
                   Column("difference", "signed"), Column("interval", "interval"), Column("p", "p"),
                   Column("verdict"))  # fmt: skip
        rows = tuple(
            (row.system, other, str(row.measure), row.mean, row.test.difference, (row.test.low, row.test.high),
             row.test.p, row.verdict)
            for other, row in self.rows()
        )  # fmt: skip
        return Table(columns, rows, "paired t-test over queries")

    def to_dict(self) -> dict[str, Any]:
        """Means, comparisons, trees and weights as plain values."""
        return {
            **self.evaluation.to_dict(),
            "comparisons": self.comparison().records(),
            "trees": {name: list(counts) for name, counts in self.trees.items()},
            "interpolation_weights": [list(weights) for weights in self.weights],
        }


@takes_frames("data")
def compare_adaptation(
    bases: Mapping[str, Ranker],
    data: RankingData,
    objective: str | None = None,
    *,
    measures: Sequence[AnyMeasure] = (NDCG(10), NDCG(3), NDCG(1)),
    folds: int = 5,
    random_state: int = 0,
    n_jobs: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    say: Said | None = None,
) -> Adaptation:
    """Compare the ways to use rankers of another domain, by cross-validation on data of one's own.

    The ways are: each base alone; a model of the own data alone (LambdaMART); each base adapted (LambdaSMART); all
    bases and the own model interpolated (Powell's method on validation data). Queries are dealt out into parts at
    random; each fold trains on all parts but two, chooses the number of trees and the interpolation weights on one,
    and tests on the other.

    Parameters
    ----------
    bases
        rankers of another domain by name; they find their features in the data by name
    data
        data of the domain to adapt to
    objective
        what training improves; NDCG@10 unless given
    measures
        measures to compare by
    folds
        number of parts, 3 or more
    random_state
        seed of the parts and the trainings
    n_jobs
        threads; all cores by default
    parameters
        parameters of the trees where they are to differ from :func:`sensible_parameters`
    say
        called with a line after each training

    Returns
    -------
    Adaptation
        the evaluation of all ways, every query tested once

    Raises
    ------
    ModelError
        if the data lacks features of a base

    Examples
    --------
    >>> from gradrank.data.artificial import make_data
    >>> from gradrank.models.linear import LinearRanker
    >>> data = make_data(60, n_docs=10, n_features=3, random_state=1)
    >>> base = LinearRanker([1.0, 0.0, 0.0])
    >>> result = compare_adaptation({"base": base}, data, folds=3, parameters={"n_estimators": 10})
    >>> result.evaluation.systems
    ('base', 'own data', 'base, adapted', 'interpolation')
    """
    if not bases:
        raise DataError("there is no base to adapt")
    clash = {OWN, INTERPOLATION} & set(bases)
    if clash:
        raise DataError(f"a base is named {clash.pop()!r}, which names another system here")
    if not 3 <= folds <= data.n_queries:
        raise DataError(f"folds is {folds}, expected 3 to {data.n_queries}, the number of queries")
    say = say or (lambda _: None)
    fitted = {name: under_names_of(base, data) for name, base in bases.items()}
    names = [*bases, OWN, *map(adapted, bases), INTERPOLATION]
    columns = {name: np.empty(data.n_docs) for name in names}
    for name, base in fitted.items():
        columns[name] = base.grouped_scores(data, n_jobs=n_jobs)
    trees: dict[str, list[int]] = {name: [] for name in (OWN, *map(adapted, bases))}
    weights: list[tuple[float, ...]] = []
    parts = np.array_split(np.random.default_rng(random_state).permutation(data.n_queries), folds)
    for number, (train_parts, valid_part, test_part) in enumerate(letor_rotation(folds), 1):
        train = data.take_queries(np.sort(np.concatenate([parts[part] for part in train_parts])))
        valid, test = (data.take_queries(np.sort(parts[part])) for part in (valid_part, test_part))
        options = {**sensible_parameters(train), "random_state": random_state, "n_jobs": n_jobs, **(parameters or {})}
        rows = _rows(data, np.sort(parts[test_part]))
        rankers: dict[str, Ranker] = {}
        learners = {OWN: LambdaMART(objective, **options)}
        learners |= {adapted(name): LambdaSMART(objective, base=base, **options) for name, base in fitted.items()}
        for name, learner in learners.items():
            rankers[name] = learner.fit(train, valid=valid).ranker_
            if learner.record_.interrupted:
                raise KeyboardInterrupt
            trees[name].append(learner.record_.best)
            columns[name][rows] = rankers[name].grouped_scores(test, n_jobs=n_jobs)
            say(f"fold {number} of {folds}: {name}, {learner.record_.best} trees")
        mixed = [*fitted.values(), rankers[OWN]]
        found = search_weights(
            [ranker.predict(valid, n_jobs=n_jobs) for ranker in mixed],
            valid,
            learners[OWN]._measure(),
            method="powell",
        )
        weights.append(found.weights)
        columns[INTERPOLATION][rows] = sum(
            weight * ranker.grouped_scores(test, n_jobs=n_jobs)
            for weight, ranker in zip(found.weights, mixed, strict=True)
        )
    given_order = {name: data.in_input_order(column) for name, column in columns.items()}
    evaluation = evaluate(data, given_order, measures, n_jobs=n_jobs)
    return Adaptation(evaluation, tuple(bases), {name: tuple(counts) for name, counts in trees.items()}, tuple(weights))


@takes_frames("data")
def adapt(
    base: Ranker,
    data: RankingData,
    objective: str | None = None,
    *,
    trees: int,
    random_state: int = 0,
    n_jobs: int | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Ranker:
    """Adapt a base to all of the data with a given number of trees.

    Parameters
    ----------
    base
        ranker of another domain
    data
        data of the domain to adapt to
    objective
        what training improves; NDCG@10 unless given
    trees
        number of trees to add, such as the median over the folds of :func:`compare_adaptation`
    random_state
        seed of the training
    n_jobs
        threads; all cores by default
    parameters
        parameters of the trees where they are to differ from :func:`sensible_parameters`

    Returns
    -------
    Ranker
        the base and the new trees together

    Examples
    --------
    >>> from gradrank.data.artificial import make_data
    >>> from gradrank.models.linear import LinearRanker
    >>> data = make_data(30, n_docs=10, n_features=3, random_state=1)
    >>> base, trees = adapt(LinearRanker([1.0, 0.0, 0.0]), data, trees=3).parts
    >>> type(base[1]).__name__, len(trees[1].trees)
    ('LinearRanker', 3)
    """
    options = {**sensible_parameters(data), **(parameters or {}), "n_estimators": trees, "early_stopping_rounds": None}
    learner = LambdaSMART(objective, base=base, random_state=random_state, n_jobs=n_jobs, **options)
    return learner.fit(data).ranker_


def _rows(data: RankingData, queries: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.arange(data.indptr[q], data.indptr[q + 1]) for q in queries.tolist()])
