"""Parameters of learners, each declared once: name, type, default, range, help, and where to search.

The declaration makes the constructor's signature, the checks, the command line's options, the keys of config files, the
search spaces of ``gradrank tune`` and the documentation. This module loads nothing heavy, so that the command line's
help can be made from it quickly.
"""

from __future__ import annotations

import difflib
import inspect
import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, dataclass_transform

from gradrank.errors import TrainingError
from gradrank.learners.base.search import Options, Range, Steps

# Names that other tools have for our parameters, for the hint when one of them is given.
_ELSEWHERE = {
    "trees": "n_estimators", "num_trees": "n_estimators", "num_iterations": "n_estimators",
    "iterations": "n_estimators", "num_boost_round": "n_estimators", "rounds": "n_estimators",
    "max_iter": "n_estimators",
    "leaves": "num_leaves", "max_leaves": "num_leaves", "max_leaf_nodes": "num_leaves",
    "rate": "learning_rate", "eta": "learning_rate", "shrinkage": "learning_rate",
    "min_docs": "min_child_samples", "min_data_in_leaf": "min_child_samples", "min_samples_leaf": "min_child_samples",
    "min_hessian": "min_child_weight", "min_sum_hessian_in_leaf": "min_child_weight",
    "bins": "max_bin", "max_bins": "max_bin", "border_count": "max_bin",
    "l2": "reg_lambda", "lambda_l2": "reg_lambda", "l2_regularization": "reg_lambda", "l2_leaf_reg": "reg_lambda",
    "features": "colsample_bytree", "feature_fraction": "colsample_bytree", "max_features": "colsample_bytree",
    "queries": "subsample", "bagging_fraction": "subsample",
    "early_stopping": "early_stopping_rounds", "n_iter_no_change": "early_stopping_rounds",
    "monotone": "monotone_constraints", "monotonic_cst": "monotone_constraints",
    "categorical": "categorical_feature", "categorical_features": "categorical_feature",
    "seed": "random_state", "random_seed": "random_state", "threads": "n_jobs", "num_threads": "n_jobs",
    "nthread": "n_jobs", "thread_count": "n_jobs", "hidden": "hidden_layer_sizes", "batch": "batch_size",
    "c": "C", "tolerance": "tol", "optimiser": "optimizer", "rates": "learning_rates", "quantised": "quantized",
    "eval_metric": "measure", "metric": "measure", "loss_function": "objective", "loss": "objective",
    "n_trees": "n_estimators", "rsm": "colsample_bytree", "depth": "max_depth", "od_wait": "early_stopping_rounds",
    "early_stopping_round": "early_stopping_rounds", "verbosity": "verbose", "silent": "verbose",
    "logging_level": "verbose", "cat_features": "categorical_feature", "cat_feature": "categorical_feature",
    "categorical_column": "categorical_feature",
}  # fmt: skip

# Parameters of other tools that have no like here, and what does what they do.
_NONE_HERE = {
    **dict.fromkeys(
        ("eval_at", "ndcg_eval_at", "custom_metric"),
        "a measure has its cut-off in its name: measure='NDCG@10'",
    ),
    **dict.fromkeys(
        ("lambdarank_truncation_level", "lambdarank_num_pair_per_sample", "lambdarank_pair_method"),
        "which pairs count is part of the objective: 'Lambda(NDCG, truncation=30)'",
    ),
    **dict.fromkeys(
        ("lambdarank_norm", "lambdarank_normalization", "lambdarank_score_normalization"),
        "norms of λ's are part of the objective: 'Lambda(NDCG, normalize=log)'",
    ),
    **dict.fromkeys(("label_gain", "ndcg_exp_gain"), "gains are part of the measure: 'NDCG(gain=linear)@10'"),
    **dict.fromkeys(
        ("lambdarank_unbiased", "lambdarank_position_bias_regularization"),
        "positions=… holds the positions at which documents were shown; see also train_on_clicks",
    ),
    **dict.fromkeys(
        ("device", "device_type", "task_type", "gpu_id", "gpu_device_id", "tree_method", "devices"),
        "trees are grown on processors, by histograms",
    ),
    **dict.fromkeys(
        ("boosting", "boosting_type", "booster", "bagging_freq", "subsample_freq", "data_sample_strategy",
         "min_split_gain", "gamma", "min_gain_to_split", "reg_alpha", "lambda_l1", "max_delta_step",
         "interaction_constraints", "path_smooth", "extra_trees", "min_data_per_group", "cat_smooth"),
        "what only LightGBM's trees know goes through lightgbm={…}",
    ),
    "importance_type": "feature_importances_ are shares of gain; permutation_importance goes by a measure",
    **dict.fromkeys(("class_weight", "scale_pos_weight", "is_unbalance"), "there are no classes: gains weigh labels"),
    "missing": "NaN is missing",
    **dict.fromkeys(("enable_categorical", "feature_types"), "categorical_feature=[…] names categories"),
    "use_best_model": "the best model on the validation data is kept in any case",
    "od_type": "early_stopping_rounds=N stops N trees behind the best one",
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """One parameter of a learner; :func:`parameter` declares it in a class."""

    default: Any
    help: str = ""
    name: str = ""
    annotation: str = ""
    """Its type, as it is written in the class."""
    low: float | None = None
    above: float | None = None
    high: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    """The words that are allowed, if it takes nothing else."""
    words: tuple[str, ...] = ()
    """Words that are allowed besides numbers."""
    also: tuple[int, ...] = ()
    """Numbers outside the range that other tools give a meaning, such as −1 for all cores."""
    flags: tuple[str, ...] = ()
    """Short forms on the command line, besides the one that its name makes."""
    metavar: str | None = None
    command_line: bool = True
    """Whether the command line offers it."""
    repeated: bool = False
    """Whether its option is given several times, once for each item."""
    kw_only: bool = True
    search: Range | Options | Steps | None = None
    """Where ``gradrank tune`` looks for a good value; None = it is left alone."""
    family: str = ""
    """Who declared it: trees, nets, …"""

    @property
    def kind(self) -> Literal["flag", "whole", "number", "choice", "free"]:
        """What its values are."""
        if self.choices:
            return "choice"
        first, *others = (part.strip() for part in self.annotation.split("|"))
        if "str" in others:
            return "free"
        return {"bool": "flag", "int": "whole", "float": "number"}.get(first, "free")  # type: ignore[return-value]

    @property
    def optional(self) -> bool:
        """Whether None stands for a choice that the learner makes."""
        return "None" in (part.strip() for part in self.annotation.split("|"))

    @property
    def _takes_objects(self) -> bool:
        """Whether objects of a class of their own are allowed besides numbers."""
        parts = (part.strip() for part in self.annotation.split("|"))
        return any(part not in ("int", "float", "None") and not part.startswith("Literal") for part in parts)

    @property
    def expected(self) -> str:
        """The allowed values in words.

        >>> Parameter(10, annotation="int", low=1).expected
        'a whole number of 1 or more'
        >>> Parameter(0.5, annotation="float | Literal['auto']", low=0, high=1, words=("auto",)).expected
        'a number from 0 to 1, or auto'
        >>> Parameter(0.2, annotation="float", low=0, below=1).expected
        'a number of 0 or more, below 1'
        """
        if self.kind == "choice":
            return f"{', '.join(self.choices[:-1])} or {self.choices[-1]}"
        if self.kind == "flag":
            return "true or false"
        number = "a whole number" if self.kind == "whole" else "a number"
        if self.above == 0 and self.high is None and self.below is None:
            number = f"a positive {number.removeprefix('a ')}"
        elif self.low is not None and self.high is not None:
            number += f" from {self.low:,} to {self.high:,}"
        elif self.low is not None:
            number += f" of {self.low:,} or more" + ("" if self.below is None else f", below {self.below:,}")
        else:
            ends = [
                f"{word} {end:,}" for word, end in (("above", self.above), ("below", self.below)) if end is not None
            ]
            ends += [] if self.high is None else [f"at most {self.high:,}"]
            number += f" {', '.join(ends)}" if ends else ""
        return number + "".join(f", or {word}" for word in (*self.words, *self.also))

    def check(self, value: Any) -> None:
        """Raise TrainingError unless the value is allowed."""
        if (value is None and self.optional) or (isinstance(value, str) and value in self.words):
            return
        if not self._allows(value):
            raise TrainingError(f"{self.name} is {value!r}, expected {self.expected}")

    def _allows(self, value: Any) -> bool:
        if self.kind == "free":
            return True
        if self.kind == "choice":
            return value in self.choices
        if self.kind == "flag":
            return value in (True, False) and not isinstance(value, float)
        if isinstance(value, bool | str) or not hasattr(value, "__float__"):
            return self._takes_objects and not isinstance(value, bool | str)
        if self.kind == "whole" and not hasattr(value, "__index__"):
            return False
        number = float(value)
        return number in self.also or (
            math.isfinite(number)
            and (self.low is None or number >= self.low)
            and (self.above is None or number > self.above)
            and (self.high is None or number <= self.high)
            and (self.below is None or number < self.below)
        )

    @property
    def option_names(self) -> tuple[str, ...]:
        """Its options on the command line, the full one first.

        >>> Parameter(300, name="n_estimators", flags=("--trees",)).option_names
        ('--n-estimators', '--trees')
        """
        return (f"--{self.name.replace('_', '-')}", *self.flags)


def parameter(
    *,
    default: Any,
    help: str = "",
    low: float | None = None,
    above: float | None = None,
    high: float | None = None,
    below: float | None = None,
    choices: tuple[str, ...] = (),
    words: tuple[str, ...] = (),
    also: tuple[int, ...] = (),
    flags: tuple[str, ...] = (),
    metavar: str | None = None,
    command_line: bool = True,
    repeated: bool = False,
    kw_only: bool = True,
    search: Range | Options | Steps | None = None,
) -> Any:
    """Declare a parameter in the body of a :class:`Declared` class.

    One that a base class has declared takes from there what is not said anew.

    Parameters
    ----------
    default
        Its value unless given.
    help
        What it does, for docstrings, documentation and the command line.
    low, above, high, below
        Ends of its range: the least value, or what it must exceed; the greatest value, or what it must stay below.
    choices, words, also
        The words that it takes; the words, and the numbers outside its range, that it takes besides.
    flags, metavar, command_line, repeated
        Short forms and placeholder of its option; whether there is one at all; whether it may be repeated.
    kw_only
        Whether it must be given by name.
    search
        Where ``gradrank tune`` looks for a good value, for data of any size; nowhere unless given.
    """
    return Parameter(
        default, help, low=low, above=above, high=high, below=below, choices=choices, words=words, also=also,
        flags=flags, metavar=metavar, command_line=command_line, repeated=repeated, kw_only=kw_only,
        search=search,
    )  # fmt: skip


@dataclass(frozen=True)
class _Fitted:
    """Mark of an attribute that only fitting sets."""


def fitted(*, init: Literal[False] = False) -> Any:
    """Declare an attribute that is there after fitting and is no parameter."""
    return _Fitted()


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter, fitted))
class Declared:
    """Base of classes whose parameters are declared in their bodies; makes the constructor and the docstring.

    >>> class Net(Declared):
    ...     "A net."
    ...     epochs: int = parameter(default=100, low=1, help="Most passes over the data.")
    >>> Net(epochs=3).epochs, str(inspect.signature(Net))
    (3, "(*, epochs: 'int' = 100)")
    >>> Net(epoch=3)
    Traceback (most recent call last):
        ...
    TypeError: Net has no parameter 'epoch'; did you mean epochs?
    """

    declared: ClassVar[Mapping[str, Parameter]] = {}
    """All parameters by name, in the order of the constructor."""
    family: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        own: dict[str, Parameter] = {}
        for name, value in list(vars(cls).items()):
            if isinstance(value, Parameter):
                own[name] = replace(
                    value, name=name, annotation=cls.__annotations__[name], family=vars(cls).get("family", "")
                )
            if isinstance(value, Parameter | _Fitted):
                delattr(cls, name)
        cls.declared = _merged(cls, own)
        if "__init__" not in vars(cls):
            cls.__init__ = _constructor(cls.__name__, cls.declared)  # type: ignore[method-assign]
        if cls.__doc__ and "__doc__" in vars(cls):
            cls.__doc__ = with_parameters(cls.__doc__, cls.declared)
        # Last, because scikit-learn reads the signature there.
        super().__init_subclass__(**options)


def check_parameters(learner: Declared) -> None:
    """Raise TrainingError for the first parameter that is out of range."""
    for declared in learner.declared.values():
        declared.check(getattr(learner, declared.name))


def _merged(cls: type[Declared], own: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """The class's own parameters, then those of its bases; those that may be given by place come first."""
    inherited: dict[str, Parameter] = {}
    for base in cls.__mro__[1:]:
        inherited = {**inherited, **{n: p for n, p in getattr(base, "declared", {}).items() if n not in inherited}}
    filled = {name: _filled(new, inherited.get(name)) for name, new in own.items()}
    new = {name: item for name, item in filled.items() if name not in inherited}
    return dict(sorted({**new, **inherited, **filled}.items(), key=lambda item: item[1].kw_only))


def _filled(new: Parameter, before: Parameter | None) -> Parameter:
    if before is None:
        return new
    bare = Parameter(new.default)
    said = {name: value for name, value in vars(new).items() if name == "default" or value != getattr(bare, name)}
    return replace(before, **said)


def _constructor(owner: str, declared: Mapping[str, Parameter]) -> Any:
    empty = inspect.Parameter.empty
    kinds = inspect.Parameter
    parameters = [
        kinds(p.name, kinds.KEYWORD_ONLY if p.kw_only else kinds.POSITIONAL_OR_KEYWORD, default=p.default,
              annotation=p.annotation or empty)
        for p in declared.values()
    ]  # fmt: skip
    signature = inspect.Signature([kinds("self", kinds.POSITIONAL_OR_KEYWORD), *parameters])

    def __init__(self: Any, *places: Any, **names: Any) -> None:
        for name in names:
            if name not in declared:
                raise TypeError(f"{owner} has no parameter {name!r}{hint(name, declared)}")
        given = signature.bind(self, *places, **names).arguments
        for name, item in declared.items():
            setattr(self, name, given.get(name, item.default))

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def hint(name: str, declared: Mapping[str, Parameter]) -> str:
    """What may have been meant by a name that no parameter has, as the end of a sentence."""
    known = elsewhere(name)
    instead = _NONE_HERE.get(name.lower())
    if instead is not None and ("lightgbm=" not in instead or "lightgbm" in declared):
        return f": {instead}"
    near = [known] if known in declared else difflib.get_close_matches(name, declared, n=1)
    return f"; did you mean {near[0]}?" if near else f"; it has {', '.join(declared)}"


def elsewhere(name: str) -> str | None:
    """Our name of a parameter that other tools call so.

    >>> elsewhere("eta")
    'learning_rate'
    """
    return _ELSEWHERE.get(name.lower())


def with_parameters(text: str, declared: Mapping[str, Parameter]) -> str:
    """A docstring with a section of the parameters, before its examples."""
    if not declared:
        return text
    rows = ["Parameters", "----------"]
    for item in declared.values():
        rows.append(f"{item.name} : {item.annotation}, default {item.default!r}")
        rows += textwrap.wrap(item.help, 100, initial_indent="    ", subsequent_indent="    ")
    before, mark, examples = inspect.cleandoc(text).partition(">>> ")
    shown = f"\n\nExamples\n--------\n{mark}{examples}" if mark else ""
    return f"{before.rstrip()}\n\n" + "\n".join(rows) + shown + "\n"
