"""The parameters of the learners as options of commands, made from their declarations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from gradrank.cli import options
from gradrank.errors import DataError
from gradrank.learners.base.common_parameters import ObjectiveParameters
from gradrank.learners.base.parameters import Declared, Parameter
from gradrank.learners.boosting.parameters import BoostingParameters, WeakRankerParameters
from gradrank.learners.focused.parameters import FocusedParameters
from gradrank.learners.linear.parameters import LinearParameters
from gradrank.learners.nets.parameters import NetParameters
from gradrank.learners.trees.parameters import TreeParameters

# The declarations of all families; a learner's own parameters have no option.
FAMILIES: tuple[type[Declared], ...] = (
    ObjectiveParameters,
    TreeParameters,
    NetParameters,
    LinearParameters,
    BoostingParameters,
    WeakRankerParameters,
    FocusedParameters,
)
_PANELS = {
    "": "What is learned",
    "trees": "Trees",
    "nets": "Nets",
    "linear": "Linear (SVM)",
    "feature boosting": "Feature boosting",
    "focused": "Focused rankers",
}
_SEVERAL = "Several kinds of learners"
# Said in the panel of the whole command.
_GENERAL = ("random_state", "n_jobs", "train_measure", "early_stopping_rounds")
# All families mean the same by them.
_ALIKE = ("measure", "random_state")


def learner_parameters(families: Sequence[type[Declared]] = FAMILIES) -> dict[str, list[Parameter]]:
    """All parameters that the command line offers, each with the declarations of the families that have it."""
    found: dict[str, list[Parameter]] = {}
    for family in families:
        for name, declared in family.declared.items():
            known = found.get(name, ())
            if declared.command_line and declared not in known and not (known and name in _ALIKE):
                found.setdefault(name, []).append(declared)
    return found


def takes_parameters(
    *families: type[Declared], without: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, in the place of its ``**parameters``, an option for each parameter of the families' learners.

    All families unless some are named. An option that is not given is None. One whose name the command has itself is
    left to it.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        plain = [item for item in own.parameters.values() if item.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = {*without, *(item.name for item in plain)}
        made = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(declared))
            for name, declared in learner_parameters(families or FAMILIES).items()
            if name not in taken
        ]

        def call(**given: Any) -> None:
            command(**given)

        # Not functools.wraps: whoever looks for the signature must find this one.
        call.__name__, call.__doc__, call.__module__ = command.__name__, command.__doc__, command.__module__
        everything = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in plain] + made
        call.__signature__ = inspect.Signature(everything)  # type: ignore[attr-defined]
        call.__annotations__ = {item.name: item.annotation for item in everything}
        return call

    return decorate


def _annotation(declared: Sequence[Parameter]) -> Any:
    first = declared[0]
    flags = list(dict.fromkeys(flag for item in declared for flag in item.option_names))
    kind, more = _option_type(declared)
    if kind is bool:
        flags = [f"{flags[0]}/--no-{flags[0].removeprefix('--')}"]
    panel = None if first.name in _GENERAL else _PANELS[first.family] if len(declared) == 1 else _SEVERAL
    option = typer.Option(
        *flags, metavar=None if kind is bool else first.metavar, help=_help(declared), rich_help_panel=panel, **more
    )
    return Annotated[kind | None, option]


def _option_type(declared: Sequence[Parameter]) -> tuple[Any, dict[str, Any]]:
    """The type of an option, and how its text is parsed."""
    first = declared[0]
    if first.repeated:
        return list[str], {}
    kinds = {item.kind for item in declared}
    numbers_or_words = any(item.words or (item.kind == "free" and item.annotation[:3] == "int") for item in declared)
    if numbers_or_words:
        return options.NumberOrText, {"parser": options.number_or_text}
    if kinds <= {"whole"}:
        return int, {}
    if kinds <= {"whole", "number"}:
        return float, {}
    return (bool, {}) if kinds == {"flag"} else (str, {})


def _help(declared: Sequence[Parameter]) -> str:
    """The first clause of what each family says."""
    said: dict[str, str] = {}
    for item in declared:
        said.setdefault(re.split(r"[;.] |[.]$", item.help, maxsplit=1)[0], _PANELS[item.family])
    if len(said) == 1:
        return f"{next(iter(said))}."
    return " ".join(f"{panel}: {text[0].lower()}{text[1:]}." for text, panel in said.items())


def flag_of(name: str) -> str:
    """The option of a parameter.

    >>> flag_of("n_estimators")
    '--n-estimators'
    """
    return f"--{name.replace('_', '-')}"


def parsed(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that were given, those of repeated options taken apart."""
    found = {name: value for name, value in given.items() if value is not None and value != []}
    if "monotone_constraints" in found:
        found["monotone_constraints"] = dict(map(_signed_feature, found["monotone_constraints"]))
    if "categorical_feature" in found:
        found["categorical_feature"] = tuple(found["categorical_feature"])
    if "lightgbm" in found:
        found["lightgbm"] = key_values(found["lightgbm"], "--lightgbm")
    return found


def _signed_feature(pair: str) -> tuple[str, int]:
    feature, _, sign = pair.rpartition("=")
    if sign not in ("1", "+1", "-1", "0") or not feature:
        raise DataError(f"--monotone-constraints is {pair!r}, expected FEATURE=1 or FEATURE=-1")
    return feature, int(sign)


def key_values(pairs: Sequence[str] | None, flag: str) -> dict[str, Any]:
    """``KEY=VALUE`` options; values that are numbers become numbers.

    >>> key_values(["a=1", "b=x"], "--lightgbm")
    {'a': 1, 'b': 'x'}
    """
    found: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise DataError(f"{flag} is {pair!r}, expected KEY=VALUE")
        found[key] = options.number_or_text(value)
    return found


def option_words(name: str, value: Any) -> list[str]:
    """A parameter as it is given on the command line.

    >>> option_words("quantized", False), option_words("monotone_constraints", {"bm25": 1})
    (['--no-quantized'], ['--monotone-constraints', 'bm25=1'])
    """
    if isinstance(value, bool):
        return [flag_of(name) if value else flag_of(f"no-{name}")]
    if isinstance(value, Mapping):
        return [word for key, item in value.items() for word in (flag_of(name), f"{key}={item}")]
    if name == "categorical_feature":
        return [word for item in value for word in (flag_of(name), str(item))]
    return [flag_of(name), ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)]
