"""Parameters of boosted trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from gradrank.learners.base.common_parameters import (
    CheckpointParameters,
    ChoosingParameters,
    CommonParameters,
    ObjectiveParameters,
    SeedParameters,
)
from gradrank.learners.base.parameters import parameter
from gradrank.learners.base.search import Options, Range, Steps

if TYPE_CHECKING:
    from gradrank.learners.trees.diagnostics import Diagnostics
    from gradrank.models.ranker import Ranker

SPLIT_RULES = ("mse", "newton")
GROW_POLICIES = ("symmetric", "lossguide")
STEP_RULES = ("newton", "gradient", "optimal", "optimal-leaf", "optimal-gradient")


class TreeParameters(ObjectiveParameters, ChoosingParameters, SeedParameters, CheckpointParameters, CommonParameters):
    """How boosted trees are grown."""

    family: ClassVar[str] = "trees"

    n_estimators: int | None = parameter(
        default=None, low=1, flags=("--trees",), metavar="N",
        help="Most trees to grow; with validation data the model keeps as many as are best. None grows them until "
        "early_stopping_rounds trees have brought nothing new, on validation data or on queries that are held out "
        "(validation_fraction); with neither it is a fixed number.",
        search=Steps(2000, patience=75),
    )  # fmt: skip
    num_leaves: int | None = parameter(
        default=None, low=2, high=131_072, flags=("--leaves",), metavar="N",
        help="Most leaves of a tree that is grown leaf by leaf; None is half the root of the number of queries, from "
        "10 to 63. Symmetric trees have max_depth instead.",
        search=Range(4, 128, log=True),
    )  # fmt: skip
    learning_rate: float | None = parameter(
        default=None, above=0, flags=("--rate",), metavar="R",
        help="Shrinkage: the factor of every leaf value; None is 0.1.",
        search=Range(0.02, 0.3, log=True),
    )  # fmt: skip
    early_stopping_rounds: int | None = parameter(
        default=None,
        help="Stop after so many trees without a new best on the validation data; None makes them all, then chooses, "
        "if n_estimators is given, and else is 100.",
    )
    validation_fraction: float = parameter(
        default=0.2, low=0, below=1, flags=("--hold-out",), metavar="SHARE",
        help="Without validation data and n_estimators: share of the queries that a first training holds out to find "
        "the number of trees; a second one then learns from all of them. 0 holds out none.",
    )  # fmt: skip
    min_child_samples: int | None = parameter(
        default=None, low=1, flags=("--min-docs",), metavar="N",
        help="Fewest documents in a leaf of a tree that is grown leaf by leaf; None is 20, and fewer where the data "
        "has less than 1,200 documents.",
        search=Range(2, 200, log=True),
    )  # fmt: skip
    split: str = parameter(
        default="auto", choices=("auto", *SPLIT_RULES), metavar="RULE",
        help="Search splits by least squares on the λ's (mse, the papers) or by Newton gain (newton, LightGBM and "
        "XGBoost); auto is newton where the objective has a usable second derivative.",
    )  # fmt: skip
    step: str = parameter(
        default="auto", choices=("auto", *STEP_RULES), metavar="RULE",
        help="Leaf values by Newton's step (newton) or the mean λ (gradient); optimal and optimal-leaf multiply "
        "Newton's by the exact best weights on the training data, one for the tree or one for each leaf; "
        "optimal-gradient multiplies mean λ's by one for the tree.",
    )  # fmt: skip
    grow_policy: str | None = parameter(
        default=None, choices=GROW_POLICIES, metavar="POLICY",
        help="Trees that split the leaf that gains most (lossguide, grown by LightGBM), or all nodes of a level by one "
        "feature at one threshold (symmetric, as CatBoost's). None is symmetric for a measure as objective and other "
        "λ's with normalize=log, unless a parameter is given that symmetric trees do not take, and lossguide else.",
        search=Options(GROW_POLICIES),
    )  # fmt: skip
    max_depth: int | None = parameter(
        default=None, low=1, also=(-1, 0), metavar="N",
        help="Deepest a tree may be; None, 0 or −1 is no limit, and 5 for symmetric trees, which may have 8 levels.",
        search=Range(3, 8),
    )  # fmt: skip
    max_bin: int = parameter(
        default=255, low=2, high=65_535, flags=("--bins",), metavar="N", help="Most bins that a feature is cut into."
    )
    reg_lambda: float | None = parameter(
        default=None,
        low=0,
        flags=("--l2",),
        metavar="R",
        help="Added to the denominator of leaf values and split gains; None is 10, and less where the data has "
        "fewer than 200 queries, times the mean weight of queries, for a measure as objective and other λ's with "
        "normalize=log, and 0 else.",
        search=Range(0.01, 10.0, log=True),
    )
    min_child_weight: float = parameter(
        default=1e-3, low=0, metavar="R", help="Least sum of second derivatives in a leaf (split rule newton)."
    )
    colsample_bytree: float = parameter(
        default=1.0, above=0, high=1, metavar="SHARE", help="Share of the features that each tree may use.",
        search=Range(0.5, 1.0),
    )  # fmt: skip
    subsample: float | None = parameter(
        default=None, above=0, high=1, metavar="SHARE",
        help="Share of the queries that each tree sees; whole queries, not rows. None is 1 for symmetric trees and 0.7 "
        "for others; 1 is the papers' form.",
        search=Range(0.5, 1.0),
    )  # fmt: skip
    monotone_constraints: Sequence[int] | Mapping[str, int] | None = parameter(
        default=None, repeated=True, flags=("--monotone",), metavar="FEATURE=SIGN",
        help="For each feature −1, 0 or 1, or by name: scores may only fall, do anything, or only rise with it.",
    )  # fmt: skip
    categorical_feature: Sequence[int | str] = parameter(
        default=(), repeated=True, flags=("--categorical",), metavar="FEATURE",
        help="Features that hold categories: names, or numbers from 0.",
    )  # fmt: skip
    quantized: bool = parameter(
        default=True,
        help="Search splits on gradients rounded at random to 126 levels, which is faster; leaf values are exact "
        "anyway. Not used with colsample_bytree below 1 or monotone_constraints, where LightGBM cannot.",
    )
    split_docs: int | None = parameter(
        default=None, low=1, metavar="N",
        help="Search each tree's splits on about so many documents, drawn by the size of their λ and weighed by the "
        "inverse of their chance, which is faster on large data; leaf values come from all documents. None is all.",
    )  # fmt: skip
    positions: str | None = parameter(
        default=None, metavar="SOURCE",
        help="Label source that holds the position at which each document was shown; a term for each position is "
        "learned beside the trees and left out of the model, so that clicks teach less of positions.",
    )  # fmt: skip
    base: Ranker | str | None = parameter(
        default=None, metavar="MODEL",
        help="Start from the scores of a ranker, of a model file, or of a feature, given by its name.",
    )  # fmt: skip
    warm_start: bool = parameter(
        default=False, command_line=False, help="Go on from the trees of the last fit instead of starting anew."
    )
    diagnostics: int | Diagnostics | None = parameter(
        default=None, low=1, metavar="N",
        help="Record every so many trees how λ's and ranks change, for gradrank diagnose.",
    )  # fmt: skip
    lightgbm: Mapping[str, Any] | None = parameter(
        default=None, repeated=True, metavar="KEY=VALUE", help="Further parameters of LightGBM's tree growing."
    )
