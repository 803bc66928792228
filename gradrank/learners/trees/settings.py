"""Settings of the boosting of trees, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gradrank.errors import TrainingError
from gradrank.learners.trees.grower import TreeSettings
from gradrank.learners.trees.leaf_values import STEP_RULES, StepRule


@dataclass(frozen=True)
class BoostingSettings:
    """How boosting proceeds."""

    trees: int = 300
    rate: float = 0.05
    """Shrinkage: factor of every leaf value."""
    split: Literal["mse", "newton"] = "newton"
    """Splits by least squares on λ (the papers) or by Newton gain (LightGBM, XGBoost)."""
    step: StepRule = "newton"
    tree: TreeSettings = field(default_factory=TreeSettings)
    queries: float = 1.0
    """Share of the queries that each tree sees."""
    early_stopping: int | None = None
    """Stop after so many trees without a new best on the validation data; None = train them all, then choose."""
    random_state: int = 0
    n_jobs: int | None = None
    train_measure: bool = False
    """Record the measure on the training data as well."""

    def __post_init__(self) -> None:
        if isinstance(self.trees, bool) or not isinstance(self.trees, int | np.integer) or self.trees < 1:
            raise TrainingError(f"trees is {self.trees!r}, expected a whole number of 1 or more")
        if not 0.0 < self.rate < np.inf:
            raise TrainingError(f"rate is {self.rate!r}, expected a positive number")
        if self.split not in ("mse", "newton"):
            raise TrainingError(f"split is {self.split!r}, expected mse or newton")
        if self.step not in STEP_RULES:
            raise TrainingError(f"step is {self.step!r}, expected one of {', '.join(STEP_RULES)}")
        if self.tree.monotone is not None and (self.split, self.step) not in (
            ("newton", "newton"),
            ("mse", "gradient"),
        ):
            # LightGBM keeps leaf values within the constraints; then they must be of the kind its splits assume.
            raise TrainingError("monotone constraints go with split and step newton, or split mse and step gradient")
        if not 0.0 < self.queries <= 1.0:
            raise TrainingError(f"queries is {self.queries!r}, expected a share above 0, at most 1")
        if self.early_stopping is not None and self.early_stopping < 1:
            raise TrainingError(f"early_stopping is {self.early_stopping!r}, expected a whole number of 1 or more")
