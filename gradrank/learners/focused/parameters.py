"""Parameters that the three focused rankers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from gradrank.learners.base.common_parameters import SeedParameters
from gradrank.learners.base.parameters import Declared, parameter
from gradrank.learners.base.search import Range

if TYPE_CHECKING:
    from gradrank.measures import AnyMeasure


class FocusedParameters(SeedParameters):
    """What a focused ranker looks at: the ordered top k of each query, and the top k above the rest."""

    family: ClassVar[str] = "focused"

    k: int = parameter(default=10, low=1, metavar="N", help="Length of the top-k truth.")
    beta: float | Literal["auto"] = parameter(
        default=0.5, low=0, high=1, words=("auto",), metavar="SHARE",
        help="Share of the part that orders the top k, against the part that puts it above the rest; auto tries "
        "0, 0.05, …, 1 on the validation data.",
        search=Range(0.0, 1.0),
    )  # fmt: skip
    measure: str | AnyMeasure | None = parameter(
        default=None, flags=("-m",), metavar="MEASURE",
        help="Chooses the model on validation data, κ-NDCG at k unless given, and is what score() gives (κ-NDCG@10 "
        "unless given).",
    )  # fmt: skip
    label: str | None = parameter(
        default=None, metavar="SOURCE", command_line=False,
        help="Label source to learn from; the one that the measure reads unless given.",
    )  # fmt: skip
    random_state: int = parameter(
        default=0, help="Seed of the random order that makes a top-k truth of grades, and of all other randomness."
    )


class DifferenceParameters(Declared):
    """How FocusedSVM and FocusedBoost weigh the pairs of the top k and the rest."""

    family: ClassVar[str] = "focused"

    by_difference: bool = parameter(
        default=False, command_line=False,
        help="Whether a pair's difference of scores is multiplied by that of its position labels, as the paper prints; "
        "first places then pull more.",
    )  # fmt: skip
