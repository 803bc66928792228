"""Parameters that the papers' tables were made with, so that a learner's new default does not change a table.

A recipe starts from the parameters of a family here and adds its own; :func:`pinned` makes sure that nothing is left
to a learner's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradrank.errors import TrainingError
from gradrank.learners.algorithms import algorithm, parameters_of

OF_THE_RUN = (
    "n_jobs", "verbose", "callbacks", "checkpoint", "checkpoint_every", "warm_start", "train_measure", "diagnostics",
)  # fmt: skip
"""Parameters that change how a training is run or watched, not what it learns."""
# Given for each training.
_OF_EACH_TRAINING = ("objective", "measure", "random_state")

TREES: dict[str, Any] = {
    "base": None,
    "split": "mse",
    "step": "newton",
    "grow_policy": "lossguide",
    "max_depth": None,
    "max_bin": 255,
    "reg_lambda": 0.0,
    "min_child_weight": 1e-3,
    "colsample_bytree": 1.0,
    "subsample": 1.0,
    "early_stopping_rounds": None,
    "validation_fraction": 0.0,
    "monotone_constraints": None,
    "categorical_feature": (),
    "quantized": True,
    "split_docs": None,
    "positions": None,
    "lightgbm": None,
}
"""LambdaMART as the papers have it: every tree sees all queries and features, splits by least squares."""

_NET: dict[str, Any] = {
    "module": None,
    "scaling": "standard",
    "batch_size": 32,
    "early_stopping_rounds": None,
    "positions": None,
    "position_dropout": 0.0,
    "device": "cpu",
}
_OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adam": {"learning_rate": 0.01, "learning_rates": None, "weight_decay": 0.1, "restart": 0},
    # Donmez et al. (2009), section 7.
    "donmez": {
        "learning_rate": None,
        "learning_rates": (1e-7, 1e-6, 1e-5, 1e-4, 1e-3),
        "weight_decay": 0.0,
        "restart": 50,
    },
}

SVM: dict[str, Any] = {"scaling": "standard", "label": None, "tol": 1e-3, "max_cuts": 1000}
"""What RankSVM, SVMmap and FocusedSVM have in common."""

BOOSTING: dict[str, Any] = {"label": None, "weak": "threshold", "max_bin": 255, "early_stopping_rounds": None}
"""What RankBoost and FocusedBoost have in common."""


def net(*, hidden_layer_sizes: int, activation: str, epochs: int, optimizer: str = "adam") -> dict[str, Any]:
    """Parameters of a net: those that recipes differ in are given, the others are fixed.

    >>> net(hidden_layer_sizes=10, activation="tanh", epochs=40)["learning_rate"]
    0.01
    """
    if optimizer not in _OPTIMIZERS:
        raise TrainingError(f"optimizer is {optimizer!r}, expected {' or '.join(_OPTIMIZERS)}")
    own = {"hidden_layer_sizes": hidden_layer_sizes, "activation": activation, "epochs": epochs, "optimizer": optimizer}
    return {**_NET, **_OPTIMIZERS[optimizer], **own}


def pinned(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the learner called ``name``, if they leave nothing that matters to its defaults.

    Objective, measure and seed are given for each training and need not be there.

    >>> pinned("svmmap", {"C": 1.0, "scaling": "standard", "rel": 1.0, "tol": 1e-3})
    Traceback (most recent call last):
    ...
    gradrank.errors.TrainingError: the recipe leaves label, max_cuts of svmmap to its defaults
    """
    known = parameters_of(algorithm(name))
    open_ = [key for key in known if key not in (*parameters, *OF_THE_RUN, *_OF_EACH_TRAINING)]
    if open_:
        raise TrainingError(f"the recipe leaves {', '.join(open_)} of {name} to its defaults")
    return dict(parameters)
