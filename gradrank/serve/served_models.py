"""The models of a service: loaded before they are needed, replaced in one step, kept if their new file is bad."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.errors import GradrankError, ModelError, ScoreError
from gradrank.models.ranker import Ranker
from gradrank.models.registry import load_ranker
from gradrank.serve.request_error import RequestError, shown
from gradrank.serve.settings import ModelSource

Stamp = tuple[int, int, int]
# Numbers of documents that go through different scorers.
_WARM_UP = (1, 100)


@dataclass(frozen=True, eq=False)
class ServedModel:
    """One version of a model, ready to score."""

    source: ModelSource
    ranker: Ranker
    sha256: str
    stamp: Stamp

    @property
    def label(self) -> str:
        """Name and version."""
        return self.source.label

    @cached_property
    def place(self) -> dict[str, int]:
        """Column of each feature."""
        return {name: column for column, name in enumerate(self.ranker.feature_names)}

    @cached_property
    def dtype(self) -> type[np.floating[Any]]:
        """The precision that the model was trained with, if it tells: so scores are those of ``gradrank score``."""
        data = self.ranker.training.get("data")
        narrow = isinstance(data, Mapping) and data.get("dtype") == "float32"
        return np.float32 if narrow else np.float64

    @cached_property
    def codes(self) -> dict[int, dict[Any, float]]:
        """For each categorical column its values and their codes."""
        categories = getattr(self.ranker, "categories", None)
        if categories is None or categories.columns is None:
            return {}
        return {
            column: {value: float(code) for code, value in enumerate(values)}
            for column, values in zip(categories.columns, categories.values, strict=True)
        }


def load_served(source: ModelSource) -> ServedModel:
    """Load a model and score with it once, so that its first request finds everything compiled."""
    stamp = stamp_of(source.path)
    ranker = load_ranker(source.path)
    digest = hashlib.sha256(source.path.read_bytes()).hexdigest()
    if not ranker.n_features:
        raise ModelError("has no features", path=source.path)
    model = ServedModel(source, ranker, digest, stamp)
    for count in _WARM_UP:
        try:
            ranker.predict(np.zeros((count, ranker.n_features), dtype=model.dtype), n_jobs=1)
        except ScoreError as error:
            raise ModelError(f"cannot be served: of documents of zeros {error}", path=source.path) from None
    return model


def stamp_of(path: Path) -> Stamp:
    """What changes when a file is written or replaced."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", path=path) from None
    return found.st_mtime_ns, found.st_size, found.st_ino


class ModelTable:
    """All models of a service by name and version.

    Whoever took a model from the table keeps it until the request is answered; a reload replaces the entry and touches
    nothing else, so that no request is dropped or sees half of a change.

    Parameters
    ----------
    sources
        The models to load; a bad one is an error here, and only a message later.
    """

    def __init__(self, sources: tuple[ModelSource, ...]) -> None:
        self._models = {source.label: load_served(source) for source in sources}
        # Of several versions of a name the one given last is meant by the bare name.
        self._latest = {source.name: source.label for source in sources}
        self.default = sources[0].name
        self._seen = {label: model.stamp for label, model in self._models.items()}
        self._reloading = threading.Lock()
        self.stale: dict[str, str] = {}
        """Models whose newest file is bad, and why."""

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(tuple(self._models.values()))

    def get(self, name: str) -> ServedModel:
        """The model of a name, or of a name and version."""
        model = self._models.get(self._latest.get(name, name))
        if model is None:
            known = ", ".join(self._models)
            raise RequestError(f"there is no model {shown(name)}, expected one of {known}", 404, "model")
        return model

    def reload(self, told: Callable[[str, str | None], None], *, all_files: bool = False) -> None:
        """Load every model whose file has changed; a bad file keeps the model that is served.

        Parameters
        ----------
        told
            Called with the model and None, or with the model and why it was not replaced.
        all_files
            Whether to load files again that look the same.
        """
        with self._reloading:
            for model in self:
                try:
                    stamp = stamp_of(model.source.path)
                    if stamp == self._seen[model.label] and not all_files:
                        if stamp == model.stamp:
                            self.stale.pop(model.label, None)  # the file was away and is back
                        continue
                    self._seen[model.label] = stamp
                    fresh = load_served(model.source)
                except (GradrankError, OSError, MemoryError) as error:
                    why = " ".join(str(error).split())
                    if self.stale.get(model.label) != why:
                        told(model.label, why)
                    self.stale[model.label] = why
                    continue
                self._models[model.label] = fresh
                self._seen[model.label] = fresh.stamp
                self.stale.pop(model.label, None)
                told(model.label, None)
