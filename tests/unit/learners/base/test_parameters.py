"""Parameters are declared once; everything else is made from the declaration."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from sklearn.base import clone

from gradrank.cli.parameters import learner_parameters
from gradrank.errors import TrainingError
from gradrank.learners.algorithms import ALGORITHMS, algorithm
from gradrank.learners.base.parameters import Declared, Parameter, fitted, parameter


class Base(Declared):
    """The base."""

    depth: int | None = parameter(default=None, low=1, also=(-1,), help="How deep.")
    rate: float = parameter(default=0.5, above=0, high=1, help="How fast.", flags=("--speed",), command_line=False)


class Derived(Base):
    """Derived.

    >>> 1 + 1
    2
    """

    target: str | None = parameter(default=None, kw_only=False, help="What for.")
    rate: float = parameter(default=0.25)
    share: float = parameter(default=0.5, low=0, high=1, words=("auto",), help="How much.")
    way: str = parameter(default="left", choices=("left", "right"), help="Where.")
    found_: int = fitted()


def test_the_signature_is_made_from_the_declaration() -> None:
    assert list(inspect.signature(Derived).parameters) == ["target", "share", "way", "depth", "rate"]
    made = Derived("x", depth=3)
    assert (made.target, made.depth, made.rate, made.share, made.way) == ("x", 3, 0.25, 0.5, "left")
    assert not hasattr(made, "found_")
    with pytest.raises(TypeError, match="positional"):
        Derived("x", 0.1)  # type: ignore[misc]


def test_a_redeclared_parameter_keeps_what_is_not_said_anew() -> None:
    assert Derived.declared["rate"] == Parameter(
        0.25, "How fast.", "rate", "float", above=0, high=1, flags=("--speed",), command_line=False
    )


@pytest.mark.parametrize(
    ("name", "allowed", "refused", "expected"),
    [
        ("depth", [None, 1, 7, -1], [0, -2, 1.5, True, "3"], "a whole number of 1 or more, or -1"),
        ("rate", [1, 0.001, 1.0], [0, 1.01, float("nan"), float("inf"), None, "auto"], "a number above 0, at most 1"),
        ("share", [0, 1, 0.3, "auto"], [-0.1, 2, "all", None, False], "a number from 0 to 1, or auto"),
        ("way", ["left", "right"], ["up", None, 1], "left or right"),
        ("target", [None, "anything", 3], [], ""),
    ],
)
def test_values_are_checked_against_the_range(name: str, allowed: list[Any], refused: list[Any], expected: str) -> None:
    declared = Derived.declared[name]
    for value in allowed:
        declared.check(value)
    for value in refused:
        with pytest.raises(TrainingError) as error:
            declared.check(value)
        assert str(error.value) == f"{name} is {value!r}, expected {expected}"


def test_docstrings_list_the_parameters_before_the_examples() -> None:
    text = inspect.getdoc(Derived) or ""
    assert text.index("Parameters\n----------") < text.index("rate : float, default 0.25\n    How fast.")
    assert text.index("How fast.") < text.index("Examples\n--------\n>>> 1 + 1")


@pytest.mark.parametrize(
    ("given", "hint"),
    [("trees", "n_estimators"), ("eta", "learning_rate"), ("num_leafs", "num_leaves"), ("threads", "n_jobs")],
)
def test_names_of_other_tools_get_a_hint(given: str, hint: str) -> None:
    with pytest.raises(TypeError, match=f"has no parameter '{given}'; did you mean {hint}\\?"):
        algorithm("lambdamart")(**{given: 1})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "instead"),
    [("eval_at", "measure='NDCG@10'"), ("lambdarank_truncation_level", "truncation=30"), ("gamma", "lightgbm={"),
     ("reg_alpha", "lightgbm={"), ("device", "processors"), ("class_weight", "gains weigh labels")],
)  # fmt: skip
def test_what_other_tools_have_and_nothing_here_has_is_told(given: str, instead: str) -> None:
    """The nearest name would mislead: reg_alpha is not reg_lambda."""
    with pytest.raises(TypeError, match=f"has no parameter '{given}': .*{instead}"):
        algorithm("lambdamart")(**{given: 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"has no parameter '{given}'") as told:
        algorithm("ranksvm")(**{given: 1})  # type: ignore[arg-type]
    assert "lightgbm" not in str(told.value)


# ---------------------------------------------------------------- every learner
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_learner_declares_and_explains_its_parameters(name: str) -> None:
    kind = algorithm(name)
    assert set(kind().get_params(deep=False)) == set(kind.declared)
    for declared in kind.declared.values():
        assert declared.help.endswith("."), declared.name
        assert declared.annotation, declared.name
        declared.check(declared.default)
        assert f"{declared.name} : " in (kind.__doc__ or "")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_learner_clones_and_sets_each_parameter(name: str) -> None:
    kind = algorithm(name)
    for declared in kind.declared.values():
        marker = object()
        learner = kind(**{declared.name: marker})  # type: ignore[arg-type]
        assert getattr(learner, declared.name) is marker
        assert kind().set_params(**{declared.name: 7}).get_params()[declared.name] == 7
    assert clone(kind()).get_params() == kind().get_params()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_learner_refuses_what_is_out_of_range(name: str) -> None:
    kind = algorithm(name)
    wrong = {"whole": 2.5, "number": float("nan"), "flag": "yes", "choice": "nowhere"}
    tried = 0
    for declared in kind.declared.values():
        if declared.kind in wrong:
            with pytest.raises(TrainingError, match=f"^{declared.name} is "):
                kind(**{declared.name: wrong[declared.kind]}).check_parameters()  # type: ignore[arg-type]
            tried += 1
    assert tried >= 3


def test_options_of_the_command_line_clash_with_none() -> None:
    flags: dict[str, str] = {}
    for name, declared in learner_parameters().items():
        for flag in {flag for item in declared for flag in item.option_names}:
            assert flags.setdefault(flag, name) == name, flag


def test_only_what_the_command_line_can_say_is_an_option() -> None:
    offered = set(learner_parameters())
    for name in ALGORITHMS:
        for declared in algorithm(name).declared.values():
            assert (declared.name in offered) >= declared.command_line, declared.name
    assert not offered & {"checkpoint", "checkpoint_every", "callbacks", "verbose", "module", "warm_start"}
