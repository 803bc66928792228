"""Things that will go."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradrank.errors import GoingAwayWarning, GradrankWarning
from gradrank.runtime.deprecation import deprecated, warn_deprecated


@deprecated(gone_in="9.0.0", instead="total()")
def add(x: int, *, y: int = 1) -> int:
    """Add."""
    return x + y


def test_a_deprecated_function_does_what_it_did_and_names_the_version_and_the_caller() -> None:
    with pytest.warns(GoingAwayWarning) as caught:
        assert add(2, y=3) == 5
    [warning] = caught
    assert str(warning.message) == "add() goes in gradrank 9.0.0; use total()"
    assert Path(warning.filename) == Path(__file__)
    assert (add.__name__, add.__doc__) == ("add", "Add.")


def test_nothing_is_said_before_the_call() -> None:
    # Warnings are errors in this suite.
    assert deprecated(gone_in="9.0.0", instead="total()")(add) is not add


def test_arguments_can_be_deprecated() -> None:
    with pytest.warns(GradrankWarning, match=r"^fit\(weights=…\) goes in gradrank 9\.0\.0; use weight$"):
        warn_deprecated("fit(weights=…)", gone_in="9.0.0", instead="weight")


def test_it_is_shown_unless_somebody_hides_it() -> None:
    # Python hides DeprecationWarning outside of __main__, and shows FutureWarning.
    assert issubclass(GoingAwayWarning, FutureWarning)
    assert not issubclass(GoingAwayWarning, DeprecationWarning)
