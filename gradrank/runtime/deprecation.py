"""Names and arguments that will go: what to use instead, and the version in which they are gone."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from gradrank.errors import GoingAwayWarning
from gradrank.runtime.warn import warn

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def warn_deprecated(what: str, *, gone_in: str, instead: str) -> None:
    """Warn, at the line of the user's code, that something will go; for arguments and values.

    Parameters
    ----------
    what
        The thing as users write it.
    gone_in
        Version that no longer has it; a contract test finds it when the version is reached.
    instead
        What users write from now on.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_deprecated("evaluate(ks=…)", gone_in="0.3.0", instead="measures with a cut-off, as NDCG@10")
    >>> str(caught[0].message)
    'evaluate(ks=…) goes in gradrank 0.3.0; use measures with a cut-off, as NDCG@10'
    """
    warn(f"{what} goes in gradrank {gone_in}; use {instead}", GoingAwayWarning)


def deprecated(
    *, gone_in: str, instead: str
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """A function that works as before and warns at each call; arguments as for :func:`warn_deprecated`.

    >>> import warnings
    >>> @deprecated(gone_in="0.3.0", instead="twice()")
    ... def double(x):
    ...     return 2 * x
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     double(21)
    42
    >>> str(caught[0].message)
    'double() goes in gradrank 0.3.0; use twice()'
    """

    def mark(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @wraps(function)
        def marked(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            warn_deprecated(f"{function.__qualname__}()", gone_in=gone_in, instead=instead)
            return function(*args, **kwargs)

        return marked

    return mark
