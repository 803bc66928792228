"""``gradrank import``: a model of another tool as one of gradrank's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, check_writable
from gradrank.errors import DataError


def import_(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Model file: LightGBM's text, XGBoost's JSON or UBJSON, CatBoost's JSON, RankLib's trees or linear "
            "models, an ONNX tree ensemble, or one of gradrank's. Its content tells which.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Model file of gradrank's to write.")],
    feature_names: Annotated[
        Path | None,
        typer.Option(
            "--feature-names",
            metavar="FILE",
            help="Names of the features, one per line in the model's order; RankLib's and some other models only "
            "number theirs.",
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Read a model of another tool and write it as a model of gradrank's.

    Every command takes models of these tools as they are; a model of gradrank's has names for its features.
    """
    notes = Notes(quiet)
    check_writable(output, model)
    from gradrank.models.registry import load_ranker

    ranker = load_ranker(model)
    if feature_names is not None:
        names = _names(feature_names)
        if len(names) != ranker.n_features:
            raise DataError(f"has {len(names)} names, the model has {ranker.n_features} features", path=feature_names)
        ranker = ranker.renamed(names)
    ranker.remember(imported_from=model.name)
    ranker.save(output)
    notes.say(f"{output}: {ranker!r}")


def _names(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise DataError("there is no such file", path=path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from None
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text", path=path) from None
    empty = [number for number, line in enumerate(lines, 1) if not line.strip()]
    if empty:
        raise DataError("is empty, expected a name", path=path, line=empty[0])
    return [line.strip() for line in lines]
