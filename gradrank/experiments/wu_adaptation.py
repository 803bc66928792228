"""Wu, Burges, Svore, Gao (2009), Ranking, Boosting, and Model Adaptation: tables 3 to 5, other domains.

The paper's languages are private. In their place stand artificial domains of one polynomial, some of whose terms differ
from domain to domain; or, for data that is given, its own queries with some features shuffled, so that they say nothing
there. The rankers of other domains are two-layer LambdaRank nets as in the paper; LambdaSMART adapts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradrank.combine import combine_rankers
from gradrank.data.artificial import make_data
from gradrank.data.ranking_data import RankingData
from gradrank.data.splits import concatenate
from gradrank.errors import DataError
from gradrank.evaluation.evaluate import Evaluation, evaluate
from gradrank.experiments import pins
from gradrank.experiments.claims import gains_less, higher, not_lower
from gradrank.experiments.recipe import Recipe, Run
from gradrank.experiments.result import Outcome
from gradrank.experiments.settings import Scale, Splits, setting
from gradrank.experiments.trainings import Training, trained
from gradrank.experiments.wu import PAPER
from gradrank.measures import NDCG
from gradrank.models.ranker import Ranker

_MEASURES = (NDCG(10), NDCG(3), NDCG(1))
OWN = "own"
"""The domain to adapt to."""


@dataclass(frozen=True, kw_only=True)
class AdaptationScale(Scale):
    """Size of the domains, of the nets and of the trees."""

    queries: int = setting(
        300, "training queries of the domain to adapt to; a third as many for validation", of_data=True
    )
    test_queries: int = setting(1000, "test queries of the domain to adapt to", of_data=True)
    foreign_queries: int = setting(
        2000, "training queries of each other domain; a tenth as many for validation", of_data=True
    )
    noise: float = setting(0.3, "error of the judges, in deviations of the true relevance", of_data=True)
    shifts: tuple[float, ...] = setting((0.2, 0.35, 0.5), "share of the terms that differ in each other domain")
    objective: str = setting("Lambda(NDCG)", "λ's of the nets and of the trees")
    hidden_layer_sizes: int = setting(10, "hidden nodes of the nets")
    activation: str = setting("tanh", "of the hidden nodes: tanh or relu")
    epochs: int = setting(40, "epochs of the nets")
    n_estimators: int = setting(300, "most trees that LambdaSMART adds")
    num_leaves: int = setting(20, "leaves per tree")
    learning_rate: float = setting(0.1, "learning rate of the trees")
    min_child_samples: int = setting(20, "fewest documents per leaf")

    def artificial_data(self) -> dict[str, RankingData]:
        """Train, validation and test data of the domain to adapt to, and train and validation data of the others."""

        def of(domain: int, shift: float, part: int, queries: int) -> RankingData:
            # Queries of different domains have different ids, so that their data can be joined.
            return make_data(
                max(2, queries), first_qid=1 + (3 * domain + part) * 1_000_000,
                n_docs=self.docs, n_features=self.features, random_state=self.random_state,
                noise=self.noise, domain_shift=shift, domain=domain, part=part, n_jobs=self.n_jobs,
            )  # fmt: skip

        sizes = (self.queries, self.queries // 3, self.test_queries)
        found = {name: of(0, 0.0, part, size) for part, (name, size) in enumerate(zip(_SPLITS, sizes, strict=True))}
        for domain, shift in enumerate(self.shifts, 1):
            for part, (name, size) in enumerate(
                (("train", self.foreign_queries), ("vali", self.foreign_queries // 10))
            ):
                found[f"{name} {domain}"] = of(domain, shift, part, size)
        return found

    def gigabytes(self) -> float:
        queries = 1.4 * self.queries + self.test_queries + 1.1 * len(self.shifts) * self.foreign_queries
        return queries * self.docs * self.features * 4 / 1e9

    def net(self) -> dict[str, Any]:
        """Parameters of the nets."""
        return pins.net(hidden_layer_sizes=self.hidden_layer_sizes, activation=self.activation, epochs=self.epochs)

    def trees(self) -> dict[str, Any]:
        """Parameters of the trees; each training has a base of its own."""
        given = {
            **pins.TREES, "n_estimators": self.n_estimators, "num_leaves": self.num_leaves,
            "learning_rate": self.learning_rate, "min_child_samples": self.min_child_samples,
        }  # fmt: skip
        del given["base"]
        return given

    def learners(self) -> dict[str, dict[str, Any]]:
        return {"LambdaRank": self.net(), "LambdaSMART": self.trees()}


_SPLITS = ("train", "vali", "test")


def domains_of(scale: AdaptationScale, data: Splits) -> dict[str, RankingData]:
    """The data of all domains; for data with one domain the others are made from its training queries.

    A domain that is made has a random share of the feature columns shuffled over all documents: they keep their
    distribution and say nothing. The queries that foreign rankers learn from are not those that adapt them.
    """
    if "train 1" in data:
        return dict(data)
    if data["train"].n_queries < 3 + 3 * len(scale.shifts):
        raise DataError(
            f"the training data has {data['train'].n_queries} queries, expected {3 + 3 * len(scale.shifts)} or more: "
            f"{len(scale.shifts)} other domains are made of them"
        )
    rng = np.random.default_rng(scale.random_state)
    order = rng.permutation(data["train"].n_queries)
    cut = max(2, min(scale.queries, len(order) // 3))
    own, rest = np.sort(order[:cut]), order[cut:]
    found = {"train": data["train"].take_queries(own), "vali": data["vali"], "test": data["test"]}
    # Each has queries of its own, so that their data can be joined.
    shares = np.array_split(rest, len(scale.shifts))
    for domain, (shift, queries) in enumerate(zip(scale.shifts, shares, strict=True), 1):
        changed = data["train"].take_queries(np.sort(queries))
        X = changed.X.copy()
        for column in np.flatnonzero(rng.random(X.shape[1]) < shift).tolist():
            X[:, column] = rng.permutation(X[:, column])
        changed = replace(changed, X=X)
        split = max(1, changed.n_queries // 10)
        found[f"vali {domain}"] = changed.take_queries(np.arange(split))
        found[f"train {domain}"] = changed.take_queries(np.arange(split, changed.n_queries))
    return found


# ---------------------------------------------------------------------- the trainings
def _net(scale: AdaptationScale, name: str, train: RankingData, valid: RankingData) -> Training:
    given = pins.pinned("lambdarank", scale.net())
    return Training(f"net, {name}", "lambdarank", {**given, **_shared(scale)}, train, valid)


def _adapted(scale: AdaptationScale, name: str, base: Ranker, data: Mapping[str, RankingData]) -> Training:
    given = pins.pinned("lambdasmart", {**scale.trees(), "base": None})
    del given["base"]
    return Training(f"adapted, {name}", "lambdasmart", {**given, **_shared(scale)}, data["train"], data["vali"], base)


def _shared(scale: AdaptationScale) -> dict[str, Any]:
    return {
        "objective": scale.objective, "measure": "NDCG@10", "random_state": scale.random_state, "n_jobs": scale.n_jobs
    }  # fmt: skip


def _bases(scale: AdaptationScale, data: Mapping[str, RankingData], run: Run) -> dict[str, Ranker]:
    """A net of each domain."""
    domains = {OWN: ("train", "vali")} | {
        f"domain {k}": (f"train {k}", f"vali {k}") for k in range(1, len(scale.shifts) + 1)
    }
    trainings = [_net(scale, name, data[train], data[valid]) for name, (train, valid) in domains.items()]
    return dict(zip(domains, trained(trainings, run), strict=True))


# ---------------------------------------------------------------------- the tables
def table_3(scale: AdaptationScale, data: Splits, run: Run) -> Outcome:
    """A net of a large mixed collection, and LambdaSMART on top of it with a few queries of one kind.

    The first other domain and the own one together are the background.
    """
    sets = domains_of(scale, data)
    mixed = concatenate([sets["train 1"], sets["train"]]), concatenate([sets["vali 1"], sets["vali"]])
    (base,) = trained([_net(scale, "background", *mixed)], run)
    (adapted,) = trained([_adapted(scale, "background", base, sets)], run)
    evaluation = evaluate(sets["test"], {"background net": base, "LambdaSMART": adapted}, _MEASURES)
    after, before = _values(evaluation, "LambdaSMART"), _values(evaluation, "background net")
    claim = gains_less("NDCG@10", "LambdaSMART", "the background net", after, before, margin=0.01)
    return Outcome((evaluation.table(),), (), (claim,))


def table_4(scale: AdaptationScale, data: Splits, run: Run) -> Outcome:
    """Nets of each domain, tested on the domain to adapt to."""
    sets = domains_of(scale, data)
    bases = _bases(scale, sets, run)
    evaluation = evaluate(sets["test"], bases, _MEASURES)
    claims = tuple(
        higher(
            "NDCG@10",
            "the net of the own domain",
            f"that of {name}",
            _values(evaluation, OWN),
            _values(evaluation, name),
        )
        for name in bases
        if name != OWN
    )
    return Outcome((evaluation.table(),), (), claims)


def table_5(scale: AdaptationScale, data: Splits, run: Run) -> Outcome:
    """Nets of other domains adapted by LambdaSMART, beside their interpolation and training on merged data."""
    sets = domains_of(scale, data)
    bases = _bases(scale, sets, run)
    foreign = [name for name in bases if name != OWN]
    merged = (
        concatenate([sets["train"], *(sets[f"train {k}"] for k in range(1, len(foreign) + 1))]),
        sets["vali"],
    )
    trainings = [_adapted(scale, name, bases[name], sets) for name in foreign]
    *adapted, merged_net = trained([*trainings, _net(scale, "merged data", *merged)], run)
    mixed = combine_rankers(list(bases.values()), sets["vali"], "NDCG@10", method="powell", n_jobs=scale.n_jobs)
    systems = {
        **{f"net of {name}": bases[name] for name in bases},
        **{f"{name} adapted": ranker for name, ranker in zip(foreign, adapted, strict=True)},
        "interpolation": mixed,
        "merged data": merged_net,
    }
    evaluation = evaluate(sets["test"], systems, _MEASURES)
    claims = []
    for name in foreign:
        after = _values(evaluation, f"{name} adapted")
        claims.append(
            higher("NDCG@10", f"{name} adapted", f"the net of {name}", after, _values(evaluation, f"net of {name}"))
        )
        claims.append(
            higher("NDCG@10", f"{name} adapted", "interpolation", after, _values(evaluation, "interpolation"))
        )
    own, interpolated = _values(evaluation, f"net of {OWN}"), _values(evaluation, "interpolation")
    claims.append(not_lower("NDCG@10", "interpolation", "the net of the own domain", interpolated, own, margin=0.005))
    return Outcome((evaluation.table(),), (), tuple(claims))


def _values(evaluation: Evaluation, system: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return evaluation.values[system][NDCG(10)]


# ---------------------------------------------------------------------- the recipes
_TINY: dict[str, Any] = {
    "queries": 12, "test_queries": 20, "foreign_queries": 20, "docs": 8, "features": 4, "shifts": (0.3, 0.5),
    "epochs": 2, "n_estimators": 5, "num_leaves": 4, "min_child_samples": 3,
}  # fmt: skip
# The paper's Korean data has 3,724 training, 372 validation and 334 test queries, its other languages some 45,000.
_PAPER: dict[str, Any] = {
    "queries": 3724,
    "foreign_queries": 10_000,
    "test_queries": 5_000,
    "n_estimators": 500,
    "epochs": 100,
}

# Table 3 is of web data, with judges who err as in table 2. Its domain, long queries, is a part of the background that
# the net was trained on, and no other market: all but a few terms are the same.
_LONG_QUERIES: dict[str, Any] = {"noise": 0.5, "shifts": (0.02,)}

TABLE_3 = Recipe(
    table_3,
    PAPER,
    "table 3",
    "adapting a ranker with a few hundred queries",
    "Adapting with a few hundred queries gains nothing significant.",
    small=AdaptationScale(**_LONG_QUERIES),
    tiny=AdaptationScale(**_TINY),
    full=AdaptationScale(**{**_PAPER, **_LONG_QUERIES, "queries": 525, "n_estimators": 263, "num_leaves": 10}),
    side_by_side=True,
)
TABLE_4 = Recipe(
    table_4,
    PAPER,
    "table 4",
    "rankers of other domains",
    "The ranker of the own, small domain beats those of other, larger ones.",
    small=AdaptationScale(queries=800),
    tiny=AdaptationScale(**_TINY),
    full=AdaptationScale(**_PAPER),
    side_by_side=True,
)
TABLE_5 = Recipe(
    table_5,
    PAPER,
    "table 5",
    "rankers of other domains, adapted",
    "Each adapted ranker beats its base and the interpolation of all, significantly.",
    small=AdaptationScale(queries=800),
    tiny=AdaptationScale(**_TINY),
    full=AdaptationScale(**_PAPER),
    side_by_side=True,
)
