"""The public names of the package: listed, loaded when used, explained with an example."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys

import pytest

import gradrank

NAMES = [name for name in gradrank.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_explained_with_an_example(name: str) -> None:
    thing = getattr(gradrank, name)
    assert inspect.getdoc(thing)
    assert doctest.DocTestParser().get_examples(thing.__doc__)


def test_public_names_are_listed() -> None:
    assert set(gradrank.__all__) <= set(dir(gradrank))
    assert set(gradrank.__all__) == {"__version__", *gradrank._PUBLIC}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lambda_mart'"):
        gradrank.lambda_mart  # noqa: B018


def test_importing_loads_nothing_heavy() -> None:
    script = "import sys, gradrank; print({'numpy', 'numba', 'scipy', 'lightgbm'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "set()\n"
