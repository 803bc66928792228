"""Features on one scale: what a net sees instead of the raw values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import ModelError
from gradrank.models.features import Matrix
from gradrank.runtime.kernels import njit

_ROWS_PER_BLOCK = 16384
# A standard deviation below this share of the largest value is rounding: the feature is constant.
_LEAST_DEVIATION = {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 1e-15}


@dataclass(frozen=True, eq=False)
class Scaling:
    """z_j = (x_j − mean_j) / scale_j; 0 for a missing value, and always 0 where scale_j = 0 (constant in training).

    With ``log`` x_j is sign(x_j)·log(1 + |x_j|) first, which tames features with long tails such as click counts.

    >>> scaling = Scaling.learned(np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]]))
    >>> scaling.apply(np.array([[3.0, 7.0], [np.nan, np.nan]])).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    log: bool = False

    def __post_init__(self) -> None:
        for name in ("mean", "scale"):
            vector = np.array(getattr(self, name), dtype=np.float64)
            if vector.ndim != 1 or len(vector) != len(self.mean):
                raise ModelError(f"{name} has shape {vector.shape}, expected one number per feature")
            if not np.isfinite(vector).all() or (name == "scale" and (vector < 0).any()):
                raise ModelError(
                    f"{name} holds a value that is not a finite number{' of 0 or more' * (name == 'scale')}"
                )
            object.__setattr__(self, name, vector)

    @classmethod
    def learned(cls, X: Matrix, kind: str = "standard") -> Scaling:
        """Mean and standard deviation of each feature, missing values left out.

        ``kind`` is ``standard``, ``log`` (the same of the logarithms), or ``none``: values as they are, except that a
        feature that is constant still counts as 0.
        """
        log = kind == "log"
        n_features = X.shape[1]
        count, total, low, high = (np.zeros(n_features) for _ in range(4))
        low[:], high[:] = np.inf, -np.inf
        for block in _blocks(X, log):
            known = ~np.isnan(block)
            count += known.sum(axis=0)
            total += np.where(known, block, 0.0).sum(axis=0)
            low, high = np.fmin(low, np.fmin.reduce(block, axis=0)), np.fmax(high, np.fmax.reduce(block, axis=0))
        mean = total / np.maximum(count, 1.0)
        squares = np.zeros(n_features)
        for block in _blocks(X, log):
            squares += np.square(np.nan_to_num(block - mean, nan=0.0)).sum(axis=0)
        scale = np.sqrt(squares / np.maximum(count, 1.0))
        with np.errstate(invalid="ignore"):
            least = _LEAST_DEVIATION[X.dtype] * np.maximum(np.abs(low), np.abs(high))
            constant = (count == 0) | (high <= low) | (scale <= least)
        if kind == "none":
            return cls(np.zeros(n_features), np.where(constant, 0.0, 1.0))
        return cls(mean, np.where(constant, 0.0, scale), log)

    def apply(self, X: Matrix) -> NDArray[np.float32]:
        """Scaled features, as nets take them."""
        return self._applied(X, np.empty(X.shape, dtype=np.float32))

    def exactly(self, X: Matrix) -> NDArray[np.float64]:
        """Scaled features in double precision."""
        return self._applied(X, np.empty(X.shape, dtype=np.float64))

    def _applied(self, X: Matrix, out: NDArray[Any]) -> NDArray[Any]:
        for start in range(0, len(X), _ROWS_PER_BLOCK):
            rows = slice(start, start + _ROWS_PER_BLOCK)
            _scaled(np.ascontiguousarray(X[rows]), self.mean, self.scale, self.log, out[rows])
        return out

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"mean": self.mean.tolist(), "scale": self.scale.tolist(), "log": self.log}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Scaling:
        """The inverse of :meth:`to_dict`."""
        return cls(np.asarray(value["mean"], dtype=np.float64), np.asarray(value["scale"]), bool(value["log"]))


def _blocks(X: Matrix, log: bool) -> Any:
    for start in range(0, len(X), _ROWS_PER_BLOCK):
        block = X[start : start + _ROWS_PER_BLOCK].astype(np.float64)
        yield np.copysign(np.log1p(np.abs(block)), block) if log else block


@njit(cache=True, nogil=True)
def scaled_row(row: Any, mean: Any, scale: Any, log: Any, out: Any) -> None:
    """One row scaled: the definition, for whichever kernel needs it."""
    for j in range(len(mean)):
        value = np.float64(row[j])
        if value != value or scale[j] == 0.0:
            out[j] = 0.0
        else:
            if log:
                value = np.log1p(value) if value >= 0.0 else -np.log1p(-value)
            out[j] = (value - mean[j]) / scale[j]


@njit(cache=True, nogil=True)
def _scaled(X: Any, mean: Any, scale: Any, log: Any, out: Any) -> None:
    for row in range(len(X)):
        scaled_row(X[row], mean, scale, log, out[row])
