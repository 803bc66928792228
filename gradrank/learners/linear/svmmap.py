"""SVMmap: a convex bound of average precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.parameters import parameter
from gradrank.learners.linear.convex_risk import Oracle
from gradrank.learners.linear.map_risk import AveragePrecisionOracle
from gradrank.learners.linear.svm import LinearSVM

if TYPE_CHECKING:
    from gradrank.measures import AnyMeasure


class SVMmap(LinearSVM):
    """A convex bound of 1 − average precision (Yue, Finley, Radlinski, Joachims 2007).

    L_q = max over rankings z of [1 − AP(z) + wΨ(z) − wΨ(y)]; relevant is a label of ``rel`` or more.

    >>> from gradrank import make_splits
    >>> data = make_splits(60, n_docs=20, n_features=5, random_state=1)
    >>> SVMmap(C=1.0).fit(data["train"]).score(data["test"]) > 0.7  # MAP of a random ranker is 0.49
    True
    """

    rel: float = parameter(default=1.0, metavar="LABEL", command_line=False, help="Least label of a relevant document.")
    measure: str | AnyMeasure | None = parameter(default="MAP")

    def _oracle(self, train: RankingData) -> Oracle:
        labels = train.label(self._label_source())
        oracle = AveragePrecisionOracle(labels, train.indptr, rel=self.rel, weight=train.weight, n_jobs=self.n_jobs)
        if not oracle.counted.any():
            raise TrainingError(f"no query has both documents with label {self.rel:g} or more and others")
        return oracle
