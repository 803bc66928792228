"""Settings of an experiment, each declared once with its meaning: for Python, ``--set`` and ``experiment show``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from gradrank.data.artificial import make_splits
from gradrank.data.ranking_data import RankingData
from gradrank.errors import DataError

Splits = Mapping[str, RankingData]
"""Data sets ``train``, ``vali`` and ``test``."""

# These have options of their own on the command line.
_OWN_OPTIONS = ("random_state", "n_jobs")


def setting(default: Any, meaning: str, *, of_data: bool = False) -> Any:
    """A field of a scale: its default, what it means, and whether it describes the artificial data."""
    return field(default=default, metadata={"meaning": meaning, "of_data": of_data})


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large an experiment is, and every parameter that its result depends on. Each paper adds its own.

    >>> Scale().changed(["queries=20"]).queries
    20
    """

    queries: int = setting(1000, "training queries; half as many for validation, as many for test", of_data=True)
    docs: int = setting(50, "documents per query", of_data=True)
    features: int = setting(50, "features", of_data=True)
    noise: float = setting(0.0, "error of the judges, in deviations of the true relevance", of_data=True)
    random_state: int = setting(0, "seed of the artificial data and of all trainings")
    n_jobs: int | None = setting(None, "threads per training")

    def artificial_data(self) -> Any:
        """Artificial data of this size: train, validation and test data, or folds, as the recipe reads them."""
        return make_splits(
            self.queries, n_docs=self.docs, n_features=self.features, random_state=self.random_state, noise=self.noise,
            n_jobs=self.n_jobs,
        )  # fmt: skip

    def learners(self) -> dict[str, dict[str, Any]]:
        """The learners by name, each with all parameters that are the same in all of its trainings."""
        return {}

    def gigabytes(self) -> float:
        """Memory that the features of the artificial data take."""
        return 2.5 * self.queries * self.docs * self.features * 4 / 1e9

    # ------------------------------------------------------------------ by name
    @classmethod
    def meanings(cls) -> dict[str, str]:
        """What each setting means, by its name."""
        return {item.name: item.metadata["meaning"] for item in fields(cls)}

    @classmethod
    def of_data(cls) -> tuple[str, ...]:
        """Settings that describe the artificial data: with other data they have no effect."""
        return tuple(item.name for item in fields(cls) if item.metadata["of_data"])

    def without_effect(self, _data: Any) -> tuple[str, ...]:
        """Settings that have no effect on data that is given."""
        return self.of_data()

    def values(self) -> dict[str, Any]:
        """All settings by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def changed(self, pairs: Sequence[str]) -> Self:
        """The scale with some settings changed, each given as ``KEY=VALUE``.

        A value is read as what the setting is: a number, a word, or several of them with commas between.
        """
        known = {item.name: item for item in fields(self) if item.name not in _OWN_OPTIONS}
        asked: dict[str, Any] = {}
        for pair in pairs:
            key, equals, text = pair.partition("=")
            key = key.replace("-", "_")
            if not equals or key not in known:
                raise DataError(f"--set is {pair!r}, expected KEY=VALUE with one of {', '.join(known)}")
            # A setting that is a number or a word, such as auto, says so in its type.
            either = "float | str" in str(known[key].type)
            asked[key] = number_or_text(text) if either else _parsed(key, text, known[key].default)
        return replace(self, **asked)


def number_or_text(text: str) -> int | float | str:
    """A whole number, a number, or the text itself.

    >>> number_or_text("10"), number_or_text("0.5"), number_or_text("auto")
    (10, 0.5, 'auto')
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _parsed(key: str, text: str, default: Any) -> Any:
    """A setting's text as what its default is."""
    if isinstance(default, tuple):
        return tuple(_parsed(key, part.strip(), default[0] if default else "") for part in text.split(","))
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise DataError(f"--set {key} is {text!r}, expected true or false")
        return text.lower() == "true"
    if isinstance(default, str):
        return text
    value = number_or_text(text)
    if isinstance(default, int | float) and not isinstance(value, int | float):
        raise DataError(f"--set {key} is {text!r}, expected a number")
    if isinstance(default, int) and not isinstance(value, int):
        raise DataError(f"--set {key} is {text!r}, expected a whole number")
    return value
