"""Warnings that name the line of the user's own code."""

from __future__ import annotations

import sys
import warnings

from gradrank.errors import GradrankWarning


def warn(sentence: str, category: type[GradrankWarning] = GradrankWarning) -> None:
    """Warn of something that is allowed but seldom meant, at the line that called gradrank.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("the validation set has one query")
    >>> str(caught[0].message)
    'the validation set has one query'
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("gradrank."):
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, category, stacklevel=level)
