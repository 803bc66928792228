"""Parameters of feature boosting."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from gradrank.learners.base.common_parameters import ChoosingParameters, CommonParameters
from gradrank.learners.base.parameters import Declared, parameter
from gradrank.learners.base.search import Options, Range, Steps

if TYPE_CHECKING:
    from gradrank.measures import AnyMeasure


class BoostingParameters(ChoosingParameters, CommonParameters):
    """How weak rankers are added up."""

    family: ClassVar[str] = "feature boosting"

    n_estimators: int = parameter(
        default=300, low=1, flags=("--rounds",), metavar="N",
        help="Most rounds: each adds one weak ranker; with validation data the model keeps as many as are best.",
        search=Steps(1000, patience=100),
    )  # fmt: skip
    measure: str | AnyMeasure | None = parameter(
        default="NDCG@10", flags=("-m",), metavar="MEASURE",
        help="Chooses the number of rounds on validation data, and is what score() gives.",
    )  # fmt: skip


class WeakRankerParameters(Declared):
    """What RankBoost and FocusedBoost have for their weak rankers."""

    family: ClassVar[str] = "feature boosting"

    weak: str = parameter(
        default="threshold", choices=("threshold", "feature"), metavar="KIND",
        help="Weak rankers: a feature above a threshold, or the feature itself scaled to 0…1.",
        search=Options(("threshold", "feature")),
    )  # fmt: skip
    max_bin: int = parameter(
        default=255, low=2, high=65_536, flags=("--bins",), metavar="N", help="Most bins that a feature is cut into.",
        search=Range(8, 255, log=True),
    )  # fmt: skip
    uniform: str = parameter(
        default="pair", choices=("pair", "query"), metavar="WHAT",
        help="Whether all pairs start with the same weight (the paper) or all queries do.",
        search=Options(("pair", "query")),
    )  # fmt: skip
    label: str | None = parameter(
        default=None, metavar="SOURCE", command_line=False,
        help="Label source to learn from; the one that the measure reads unless given.",
    )  # fmt: skip
