"""Writing a ranker in another tool's format."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradrank.errors import GradrankWarning, ModelError
from gradrank.models.exchange.plan import Losses, Origin, Plan
from gradrank.models.exchange.registry import EXPORTS, Files
from gradrank.runtime.files import replacing
from gradrank.runtime.suggestions import did_you_mean

if TYPE_CHECKING:
    from gradrank.models.ranker import Ranker


def export_ranker(
    ranker: Ranker,
    path: str | Path,
    format: str,
    *,
    approximate: bool = False,
    name: str | None = None,
    sha256: str | None = None,
) -> tuple[str, ...]:
    """Write a ranker in another tool's format; see :meth:`Ranker.export`.

    ``sha256`` is that of the file that the ranker was read from, if it was.
    """
    path = Path(path)
    files, notes, losses = exported(ranker, format, approximate=approximate, name=name, sha256=sha256)
    with ExitStack() as stack:
        for ending, content in files.items():
            target = path if not ending else path.with_name(path.stem + ending)
            stack.enter_context(replacing(target)).write_bytes(content)
    for loss in losses:
        warnings.warn(loss, GradrankWarning, stacklevel=3)
    return notes


def exported(
    ranker: Ranker, format: str, *, approximate: bool = False, name: str | None = None, sha256: str | None = None
) -> tuple[Files, tuple[str, ...], tuple[str, ...]]:
    """The files that hold a ranker in another format, notes about them, and what was lost."""
    if format not in EXPORTS:
        raise ModelError(
            f"there is no format {format!r}{did_you_mean(format, EXPORTS)}; formats are {', '.join(EXPORTS)}"
        )
    part = ranker._part(np.arange(ranker.n_features))
    origin = Origin(name or type(ranker).__name__, sha256 or ranker.sha256())
    losses = Losses(format)
    files = EXPORTS[format].write(Plan(ranker.feature_names, part, origin), losses)
    lost = losses.settle(approximate)
    return files, tuple(losses.notes), tuple(lost)
