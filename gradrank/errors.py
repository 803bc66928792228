"""The errors a user can cause, each said in one sentence.

Every error that bad input can raise derives from :class:`GradrankError`; the command line turns it
into one line on standard error and exit code 2. Anything else that escapes is a fault of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_MISSING_SHOWN = 5
# A message that quotes a name of a megabyte helps nobody.
_MOST_SHOWN = 1500


def _one_line(message: str) -> str:
    """A message that may quote anything that stands in a file: line breaks and what moves a cursor become escapes."""
    if not message.isprintable():
        message = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message)
    if len(message) > _MOST_SHOWN:
        message = f"{message[: _MOST_SHOWN // 2]} … {message[-_MOST_SHOWN // 2 :]}"
    return message


class GradrankError(Exception):
    """Base of all errors that wrong input, not a fault of gradrank, can cause.

    >>> from gradrank import parse_measure
    >>> try:
    ...     parse_measure("NDGC@10")
    ... except GradrankError as error:
    ...     print(str(error)[:45])
    there is no measure 'NDGC'; did you mean NDCG
    """


class DataError(GradrankError, ValueError):
    """Data that cannot be read or does not fit: says what was found, what was expected, and where.

    >>> print(DataError("label is 'x', expected a number", path="train.txt", line=3))
    train.txt:3: label is 'x', expected a number
    """

    def __init__(self, message: str, *, path: str | Path | None = None, line: int | None = None) -> None:
        self.message = message
        """What is wrong, without the place."""
        self.path = None if path is None else str(path)
        self.line = line
        where = "" if self.path is None else self.path + (f":{line}" if line is not None else "") + ": "
        super().__init__(_one_line(where + message))


class ProjectUnavailableError(DataError):
    """A labeling project that cannot be read or written now, but may be later: it is locked, or the disk is full.

    >>> print(ProjectUnavailableError("cannot be written: database is locked", path="project.db"))
    project.db: cannot be written: database is locked
    """


class NoDocumentsError(DataError):
    """Data without a single document.

    >>> print(NoDocumentsError("holds no documents", path="part-7.parquet"))
    part-7.parquet: holds no documents
    """


class MeasureError(GradrankError, ValueError):
    """A measure that does not exist, is misspelt, or does not fit the labels it is given."""


class UnknownMeasureError(MeasureError):
    """A name that no measure has."""


class MissingExtraError(GradrankError, ImportError):
    """An optional package is needed for what was asked; says how to install it.

    >>> print(MissingExtraError("pyarrow", "parquet"))
    this needs the package pyarrow: pip install 'gradrank[parquet]'
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package}: pip install 'gradrank[{extra}]'")


class TrainingError(GradrankError, ValueError):
    """Training that cannot start: a parameter out of range, or data that does not fit."""


class ClusterError(GradrankError, RuntimeError):
    """Work of several processes that came to an end before its time: says which worker, and why.

    >>> print(ClusterError("worker 2 of 3 (127.0.0.1) was killed by signal 9"))
    worker 2 of 3 (127.0.0.1) was killed by signal 9
    """


class ObjectiveError(GradrankError, ValueError):
    """An objective that is misspelt, or does not fit the data or the learner."""


class ModelError(GradrankError, ValueError):
    """A model that cannot be read, or that does not fit the data it is to score.

    >>> print(ModelError("is not a model", path="model.json"))
    model.json: is not a model
    """

    def __init__(self, message: str, *, path: str | Path | None = None) -> None:
        self.path = None if path is None else str(path)
        super().__init__(_one_line(message if self.path is None else f"{self.path}: {message}"))


class ScoreError(ModelError):
    """A document's score that is no finite number: features, or numbers of the model, are infinite or too large.

    >>> from gradrank.models.feature import FeatureRanker
    >>> FeatureRanker("price").predict([[1.0], [float("inf")]])
    Traceback (most recent call last):
        ...
    gradrank.errors.ScoreError: document 2 gets the score inf, which is not a finite number: features are too large
    """


class FeatureMismatch(ModelError):
    """Data without the features that a model needs.

    Parameters
    ----------
    missing
        Names of the features that the data lacks.
    found, expected
        How many features there are, and how many the model takes, where names do not help.

    >>> print(FeatureMismatch(missing=["bm25"]))
    X lacks the model's feature 'bm25'
    >>> FeatureMismatch(found=3, expected=2).said_of("the base ranker")
    'has 3 features, the base ranker has 2'
    """

    def __init__(self, *, missing: Sequence[str] = (), found: int = 0, expected: int = 0) -> None:
        self.missing = tuple(missing)
        self.found = found
        self.expected = expected
        super().__init__(
            f"X {self.said_of('the model')}"
            if self.missing
            else f"X has {found} features, the model expects {expected}"
        )

    def said_of(self, owner: str) -> str:
        """What is wrong with the data, for a message that names the data and the owner of the features itself."""
        if not self.missing:
            return f"has {self.found} features, {owner} has {self.expected}"
        more = len(self.missing) - _MISSING_SHOWN
        shown = ", ".join(map(repr, self.missing[:_MISSING_SHOWN])) + (f" and {more} more" if more > 0 else "")
        return f"lacks {owner}'s feature{'s' if len(self.missing) > 1 else ''} {shown}"


class StaleJudgment(GradrankError, ValueError):
    """A judgment that answers another question than the one that is open, or takes back where nothing was said.

    A page left open in a second tab sends one; whoever keeps the events turns it away and shows the open question.
    """


class GradrankWarning(UserWarning):
    """Something that is allowed but seldom meant: the result stands, and the sentence says what to look at.

    The command line says it as a note. In Python it is a warning like any other:

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always", GradrankWarning)
    ...     warnings.warn("more trees are likely to help", GradrankWarning)
    >>> [str(warning.message) for warning in said]
    ['more trees are likely to help']
    """


class FewQueriesWarning(GradrankWarning):
    """A decision rests on so few queries that it means little; says what difference could be seen at all."""


class DoubtfulDataWarning(GradrankWarning):
    """Data that can be learned from, but is seldom meant: labels out of all proportion, a feature that is the label."""


class NotConvergedWarning(GradrankWarning):
    """Training ended while the validation measure was still rising: more steps are likely to help."""


class GoingAwayWarning(GradrankWarning, FutureWarning):
    """Something that a later version no longer has; says which version, and what to use instead."""
