"""The members of a portfolio: which learners are tried, with which parameters, in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradrank.measures import MAP, NDCG, AnyMeasure, Measure
from gradrank.objectives import Lambda, Regression

PLAIN = "plain"
"""The family of the one member that is trained as ``gradrank train`` trains without options."""

# Trees that see only part of the features differ more from each other, and sums gain by differences; but of few
# features each is needed.
_SHARES = (0.5, 0.8, 0.3)
_FEW_FEATURES = 25
# Trees are grown until the measure on queries that are left out has not risen for so many, however many that takes.
_TREES = 2000
_PATIENCE = 75
# Shapes of trees, one after the other: leaves and rate.
_SHAPES = ((15, 0.05), (7, 0.05), (31, 0.05), (4, 0.1), (63, 0.05), (15, 0.1))
# Levels and rate of symmetric trees.
_SYMMETRIC_SHAPES = ((6, 0.05), (5, 0.05), (7, 0.05), (4, 0.1))
# Where each family begins with the shapes, so that a round has several.
_FIRST_SHAPE = {"deep-trees": 0, "map-trees": 1, "mart": 2, "trees": 2}
_NETS = (("32", "standard"), ("64,32", "log"), ("10", "log"), ("128,64", "standard"))
_PENALTIES = (1.0, 0.1, 10.0, 0.01)
_EPOCHS_OF_PATIENCE = 20
# A single net jumps from epoch to epoch and from seed to seed. What it is worth shows only in a sum of some.
_NETS_PER_FOLD = 3


@dataclass(frozen=True)
class Member:
    """One learner of a portfolio: an algorithm and its parameters, trained once or several times for each fold."""

    name: str
    family: str
    algorithm: str
    parameters: Mapping[str, Any]
    models_per_fold: int = 1
    """How many models are trained for each fold and summed; each leaves out other queries to choose its steps on."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "name": self.name,
            "family": self.family,
            "algorithm": self.algorithm,
            "parameters": dict(self.parameters),
            "models_per_fold": self.models_per_fold,
        }


@dataclass(frozen=True)
class Portfolio:
    """Families of members for a measure, each with one variant after the other, without end.

    Parameters
    ----------
    measure
        what the portfolio is to be good at
    random_state
        seed of the first variants; every round has its own
    nets
        whether nets are tried, which need PyTorch
    n_features
        number of features of the data

    Examples
    --------
    >>> [member.name for member in Portfolio(NDCG(10)).round(0)]  # doctest: +NORMALIZE_WHITESPACE
    ['plain', 'deep-trees 1', 'symmetric-trees 1', 'map-trees 1', 'mart 1', 'net 1', 'ranksvm 1', 'trees 1',
     'listnet 1']
    """

    measure: AnyMeasure
    random_state: int = 0
    nets: bool = True
    n_features: int = 100

    def round(self, number: int, shares: Mapping[str, float] | None = None) -> list[Member]:
        """The members of a round, the most promising first.

        Parameters
        ----------
        number
            the round, from 0; each has other shapes, sizes and seeds
        shares
            weight of each family in the combination so far: the next round has only families of any weight, the
            heaviest first
        """
        if shares is None:
            families: Sequence[str] = (PLAIN, *self.families())
        else:
            there = [name for name in self.families() if shares.get(name, 0.0) > 0.0]
            families = sorted(there or self.families()[:1], key=lambda name: -shares.get(name, 0.0))
        return [self.member(family, number) for family in families]

    def families(self) -> tuple[str, ...]:
        """Names of the families that go on from round to round, in the order of the first."""
        target = _target(self.measure)
        return tuple(
            name
            for name, there in (
                ("deep-trees", target.cutoff is not None),
                ("symmetric-trees", True),
                ("map-trees", not isinstance(target, MAP)),
                ("mart", True),
                ("net", self.nets),
                ("ranksvm", True),
                ("trees", True),
                ("listnet", self.nets),
            )
            if there
        )

    def member(self, family: str, number: int) -> Member:
        """The variant of a family in a round."""
        seed = self.random_state + 1000 * number
        target, chosen = _target(self.measure), {"measure": str(self.measure)}
        name = f"{family} {number + 1}"
        if family == PLAIN:
            return Member(
                PLAIN, PLAIN, "lambdamart", {"objective": str(target), **chosen, "random_state": self.random_state}
            )
        if family == "ranksvm":
            penalty = _PENALTIES[number % len(_PENALTIES)]
            return Member(name, family, "ranksvm", {"label": target.label, **chosen, "C": penalty})
        if family in ("net", "listnet"):
            hidden, scaling = _NETS[number % len(_NETS)]
            parameters = {
                **chosen,
                "hidden_layer_sizes": hidden,
                "scaling": scaling,
                "early_stopping_rounds": _EPOCHS_OF_PATIENCE,
                "random_state": seed,
            }
            if family == "net":
                return Member(
                    name, family, "lambdarank", {"objective": str(_deep(target)), **parameters}, _NETS_PER_FOLD
                )
            return Member(name, family, "listnet", {**parameters, "objective": _listnet(target)}, _NETS_PER_FOLD)
        if family == "symmetric-trees":
            depth, rate = _SYMMETRIC_SHAPES[number % len(_SYMMETRIC_SHAPES)]
            parameters = {
                "objective": str(target), **chosen, "grow_policy": "symmetric", "max_depth": depth,
                "learning_rate": rate, "subsample": (1.0, 0.7)[number % 2], "n_estimators": _TREES,
                "early_stopping_rounds": _PATIENCE, "random_state": seed,
            }  # fmt: skip
            return Member(name, family, "lambdamart", parameters)
        leaves, rate = _SHAPES[(_FIRST_SHAPE[family] + number) % len(_SHAPES)]
        share = _SHARES[number % len(_SHARES)] if self.n_features >= _FEW_FEATURES else 1.0
        objectives = {
            "deep-trees": str(_deep(target)),
            "map-trees": str(MAP(label=target.label)),
            "mart": str(Regression(target.label)),
            # The measure as a goal trains over the whole list, as deep-trees do; its exact λ's are another view.
            "trees": str(Lambda(target, normalize="log", gap=True)),
        }
        parameters = {
            "objective": objectives[family],
            **chosen,
            "num_leaves": leaves,
            "learning_rate": rate,
            "colsample_bytree": share,
            "n_estimators": _TREES,
            "early_stopping_rounds": _PATIENCE,
            "random_state": seed,
        }
        return Member(name, family, "mart" if family == "mart" else "lambdamart", parameters)


def _target(measure: AnyMeasure) -> Measure:
    """What λ's follow: the measure, its first part if it is graded, NDCG@10 if it has no fast swap deltas."""
    first = measure.parts[0]
    return first if first.swap is not None else NDCG(10)


def _deep(target: Measure) -> Measure:
    """The measure over the whole list: λ's of a cut-off do not see what is below it."""
    return replace(target, cutoff=None)


def _listnet(target: Measure) -> str:
    return "ListNet" if target.label is None else f"ListNet(label={target.label})"
