"""RankSVM: the hinge loss over all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from gradrank.data.ranking_data import RankingData
from gradrank.learners.base.parameters import parameter
from gradrank.learners.linear.convex_risk import Oracle
from gradrank.learners.linear.pair_risk import PairOracle, PairWeights
from gradrank.learners.linear.svm import C_GRID, LinearSVM


class RankSVM(LinearSVM):
    """Hinge loss over all pairs of different labels (Herbrich 2000; Joachims 2002), in O(n log n) per query.

    L_q = mean over the query's pairs y_u > y_v of max(0, 1 − w·(x_u − x_v)), each times the weight of document u if
    documents have weights. With ``pairs="sum"`` it is the sum over
    the pairs, and the problem is scikit-learn's ``LinearSVC(C=C, loss="hinge", fit_intercept=False)`` on the
    differences of all pairs; SVM-rank's C is that C times the number of queries.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> model = RankSVM(C=1.0).fit(data["train"])
    >>> model.score(data["test"]) > 0.7, model.solution_.gap <= 1e-3  # a random ranker has 0.35
    (True, True)
    """

    pairs: str = parameter(
        default="mean", choices=("mean", "sum"), metavar="HOW", command_line=False,
        help="Whether the loss of a query is the mean over its pairs or their sum.",
    )  # fmt: skip

    weighs_documents: ClassVar[bool] = True

    def _c_grid(self, oracle: Oracle) -> Sequence[float]:
        if self.pairs == "mean":
            return C_GRID
        assert isinstance(oracle, PairOracle)
        per_query = oracle.pairs[oracle.pairs > 0].mean()
        return tuple(float(f"{c / per_query:.3g}") for c in C_GRID)

    def _oracle(self, train: RankingData) -> Oracle:
        labels = train.label(self._label_source())
        pairs = cast(PairWeights, self.pairs)
        return PairOracle(
            labels, train.indptr, pairs=pairs, weight=train.weight, document_weight=train.document_weight,
            n_jobs=self.n_jobs,
        )  # fmt: skip
