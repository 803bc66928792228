"""The parameters that a search may choose, and those that it must not: made from the learners' declarations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gradrank.errors import TrainingError
from gradrank.learners.algorithms import algorithm as learner_of
from gradrank.learners.algorithms import effective_parameters
from gradrank.learners.base.estimator import RankingEstimator
from gradrank.learners.base.parameters import Parameter, hint
from gradrank.learners.base.search import Options, Range, Searched, Steps, parse_search, parse_value
from gradrank.measures import AnyMeasure

# What the search itself decides, or what changes nothing that is learned.
_NOT_SEARCHED = ("measure", "random_state", "n_jobs", "train_measure", "diagnostics", "early_stopping_rounds")
_NOT_FIXED = ("measure", "random_state", "n_jobs", "train_measure", "diagnostics")
# With these a learner tries several settings itself, and chooses on validation data: here on what it is judged by.
_CHOOSES_ITSELF = (("C", "auto"), ("beta", "auto"), ("optimizer", "donmez"))


@dataclass(frozen=True)
class Space:
    """Where the parameters of a learner are looked for.

    Parameters
    ----------
    algorithm
        Name of the learner.
    common
        What all trainings have, the one with the learner's defaults as well: goal, measure, seed, what is fixed.
    searched
        Where the others are looked for.
    steps
        The number of steps, unless it is fixed or searched: training goes on until nothing is gained.
    """

    algorithm: str
    common: Mapping[str, Any] = field(default_factory=dict)
    searched: Mapping[str, Searched] = field(default_factory=dict)
    steps: Mapping[str, int] = field(default_factory=dict)

    @property
    def kind(self) -> type[RankingEstimator]:
        """The learner's class."""
        return learner_of(self.algorithm)

    def parameters(self, sampled: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters of a training, from those that were sampled; numbers in few digits."""
        rounded = {name: self.searched[name].rounded(value) for name, value in sampled.items()}
        useless = self.kind.not_searched_with({**self.common, **rounded})
        return {**self.common, **self.steps, **{name: it for name, it in rounded.items() if name not in useless}}

    def defaults(self) -> dict[str, Any]:
        """Parameters of the learner as it is without options."""
        return dict(self.common)

    def nearest_to_defaults(self) -> dict[str, Any]:
        """The point of the space that is nearest to the defaults, so that the sampler knows about where they lie."""
        chosen = effective_parameters(self.kind(**self.common))
        return {name: where.nearest(chosen[name]) for name, where in self.searched.items()}

    def points(self) -> float:
        """How many different settings there are."""
        found = 1.0
        for where in self.searched.values():
            if isinstance(where, Options):
                found *= len(where.values)
            else:
                found *= where.high - where.low + 1 if where.whole else float("inf")
        return found

    def to_dict(self) -> dict[str, Any]:
        """As plain values: what must be the same for a search to go on."""
        return {
            "algorithm": self.algorithm,
            "fixed": dict(self.common),
            "search": {name: str(where) for name, where in self.searched.items()},
            "steps": dict(self.steps),
        }


def space_of(
    algorithm: str,
    measure: AnyMeasure,
    *,
    search: Mapping[str, str | Searched] | None = None,
    fixed: Mapping[str, Any] | None = None,
    random_state: int = 0,
) -> Space:
    """The search space of a learner for a measure.

    Parameters
    ----------
    algorithm
        Name of the learner.
    measure
        What the search is for: learners that follow any measure learn for its first part.
    search
        Ranges that are to differ from the declared ones, or parameters that have none: ``"4..128:log"``, ``"a|b"``.
    fixed
        Parameters that are not searched, and their values.
    random_state
        Seed of all trainings.

    >>> from gradrank.measures import NDCG
    >>> space = space_of("lambdamart", NDCG(5), search={"num_leaves": "8..32"}, fixed={"rate": 0.1})
    >>> str(space.searched["num_leaves"]), space.common["learning_rate"], space.common["objective"]
    ('8..32', 0.1, 'NDCG@5')
    """
    kind = learner_of(algorithm)
    held = {_named(name, kind): value for name, value in (fixed or {}).items()}
    asked = {_named(name, kind): value for name, value in (search or {}).items()}
    for name in held:
        if name in _NOT_FIXED or not kind.declared[name].command_line:
            raise TrainingError(f"{name} cannot be fixed for a search")
        if name in asked:
            raise TrainingError(f"{name} is fixed and searched: say one of the two")
    for name, value in held.items():
        if (name, value) in _CHOOSES_ITSELF or (name == "learning_rates" and value is not None):
            raise TrainingError(
                f"{name} is {value}: the learner would choose by the queries that it is judged on; search it instead"
            )
    useless = kind.not_searched_with({**dict.fromkeys(asked), **held}) - set(asked)
    open_ = [name for name in kind.declared if name not in held and name not in useless]
    own = {name: _searched(kind.declared[name], asked.pop(name, None)) for name in open_}
    searched = {name: where for name, where in own.items() if where is not None}
    common: dict[str, Any] = {"measure": str(measure)}
    target = measure.parts[0]
    if (
        getattr(kind, "default_objective", None) == "NDCG@10"
        and target.swap is not None
        and "objective" not in searched
    ):
        common["objective"] = str(target)
    if "random_state" in kind.declared:
        common["random_state"] = random_state
    common |= held
    steps: dict[str, int] = {}
    counted = kind.steps_parameter
    declared = None if counted is None else kind.declared[counted].search
    if counted is not None and isinstance(declared, Steps):
        if counted not in common and counted not in searched:
            steps[counted] = declared.most
        if "early_stopping_rounds" not in common:
            steps["early_stopping_rounds"] = declared.patience
    space = Space(algorithm.lower(), common, searched, steps)
    kind(**space.parameters(space.nearest_to_defaults())).check_parameters()
    return space


def _named(name: str, kind: type[RankingEstimator]) -> str:
    """The parameter of a name, or of one of its options' short forms."""
    plain = name.removeprefix("--").replace("-", "_")
    for item in kind.declared.values():
        if plain == item.name or f"--{plain.replace('_', '-')}" in item.option_names:
            return item.name
    raise TrainingError(f"{kind.__name__} has no parameter {name!r}{hint(plain, kind.declared)}")


def _searched(item: Parameter, asked: str | Searched | None) -> Searched | None:
    """Where a parameter is looked for; None = nowhere."""
    if asked is None:
        return item.search if isinstance(item.search, Range | Options) and item.command_line else None
    if item.name in _NOT_SEARCHED or not item.command_line:
        raise TrainingError(f"{item.name} cannot be searched")
    where = parse_search(asked) if isinstance(asked, str) else asked
    if item.kind == "number" and isinstance(where, Range):
        where = Range(float(where.low), float(where.high), where.log)
    for end in where.ends():
        item.check(end)
        if (item.name, end) in _CHOOSES_ITSELF:
            raise TrainingError(f"{item.name} cannot be searched among {where}: with {end} the learner chooses itself")
    return where


def fixed_values(pairs: Mapping[str, str], algorithm: str) -> dict[str, Any]:
    """Values of parameters as they are typed, by the parameters' names.

    >>> fixed_values({"rate": "0.1", "quantized": "false"}, "lambdamart")
    {'learning_rate': 0.1, 'quantized': False}
    """
    kind = learner_of(algorithm)
    return {_named(name, kind): parse_value(text) for name, text in pairs.items()}
