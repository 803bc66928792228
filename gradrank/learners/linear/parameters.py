"""Parameters of linear rankers of large margin."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from gradrank.learners.base.common_parameters import CommonParameters
from gradrank.learners.base.parameters import parameter
from gradrank.learners.base.search import Options, Range

if TYPE_CHECKING:
    from gradrank.measures import AnyMeasure


class LinearParameters(CommonParameters):
    """How ½‖w‖² + C·Σ_q L_q(w) is minimized."""

    family: ClassVar[str] = "linear"

    C: float | Literal["auto"] = parameter(
        default=1.0, above=0, words=("auto",), flags=("--c",), metavar="R",
        help="Weight of the errors; auto tries a grid from 0.001 to 10 on the validation data.",
        search=Range(0.001, 30.0, log=True),
    )  # fmt: skip
    scaling: str = parameter(
        default="standard", choices=("none", "minmax", "standard"), metavar="NAME",
        help="Features are divided by their standard deviation (standard), their range (minmax) or taken as they are "
        "(none); the scaling is part of the ranker.",
        search=Options(("standard", "minmax")),
    )  # fmt: skip
    measure: str | AnyMeasure | None = parameter(
        default="NDCG@10", flags=("-m",), metavar="MEASURE",
        help="Chooses what is auto on the validation data, and is what score() gives.",
    )  # fmt: skip
    label: str | None = parameter(
        default=None, metavar="SOURCE", command_line=False,
        help="Label source to learn from; the one that the measure reads unless given.",
    )  # fmt: skip
    tol: float = parameter(
        default=1e-3, above=0, below=1, metavar="R", help="Training ends when the relative duality gap is at most this."
    )
    max_cuts: int = parameter(default=1000, low=1, metavar="N", help="Most planes that the solver cuts.")
