"""The formats of other tools that models are written in and read from: one entry each.

Nothing here loads NumPy, so that the command line's help can list the formats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradrank.models.exchange.plan import Losses, Plan
    from gradrank.models.ranker import Ranker

Files = dict[str, bytes]
"""What a writer gives: the content of the file under "", of files beside it under the endings of their names."""


@dataclass(frozen=True)
class ExportFormat:
    """A format that models are written in."""

    title: str
    """What the file is, in a few words, for help and documentation."""
    suffix: str
    """The usual ending of its name."""
    writer: str
    """Module and function, ``module:function`` below ``gradrank.models.exchange``: (Plan, Losses) → Files."""

    def write(self, plan: Plan, losses: Losses) -> Files:
        """The files that hold the model."""
        files: Files = _function(self.writer)(plan, losses)
        return files


@dataclass(frozen=True)
class ImportFormat:
    """A format that models are read from."""

    title: str
    recognized: Callable[[bytes], bool]
    """Whether a file that starts with these bytes may be one."""
    reader: str
    """Module and function: content → Ranker."""

    def read(self, content: bytes) -> Ranker:
        """The ranker that a file holds."""
        ranker: Ranker = _function(self.reader)(content)
        return ranker


EXPORTS: dict[str, ExportFormat] = {
    "lightgbm": ExportFormat("LightGBM's text model", ".txt", "lightgbm_text:write"),
    "lightgbm-json": ExportFormat("LightGBM's JSON dump (dump_model)", ".json", "lightgbm_json:write"),
    "vespa": ExportFormat("LightGBM's JSON dump as Vespa reads it", ".json", "lightgbm_json:write_vespa"),
    "xgboost": ExportFormat("XGBoost's JSON model (save_model)", ".json", "xgboost_write:write_json"),
    "xgboost-ubj": ExportFormat("XGBoost's UBJSON model (save_model)", ".ubj", "xgboost_write:write_ubjson"),
    "ltr-plugin": ExportFormat(
        "XGBoost's tree dump for the LTR plugins of Elasticsearch and OpenSearch (model/xgboost+json)",
        ".json",
        "ltr_plugin:write",
    ),
    "elastic": ExportFormat("Elastic's native inference ensemble", ".json", "elastic:write"),
    "ranklib": ExportFormat("RankLib's model, also of the LTR plugins (model/ranklib)", ".xml", "ranklib:write"),
    "solr": ExportFormat("Solr LTR's model, with a stub of its feature store", ".json", "solr:write"),
    "solr-9.2": ExportFormat(
        "the same for Solr 9.2 and later, with branches for missing values", ".json", "solr:write_branches"
    ),
    "onnx": ExportFormat("ONNX over float32 features", ".onnx", "onnx_write:write"),
    "onnx-double": ExportFormat("ONNX over float64 features", ".onnx", "onnx_write:write_double"),
    "c": ExportFormat("one C file that needs the C library only", ".c", "c_code:write"),
    "python": ExportFormat("one Python file that needs the standard library only", ".py", "python_code:write"),
}

# First lines of RankLib's files, those of kinds that cannot be read among them: they deserve a word of their own.
_RANKLIB = tuple(
    b"## " + kind
    for kind in (
        b"LambdaMART", b"MART", b"Random Forests", b"RankNet", b"LambdaRank", b"ListNet", b"RankBoost", b"AdaRank",
        b"Coordinate Ascent", b"Linear Regression",
    )
)  # fmt: skip

IMPORTS: dict[str, ImportFormat] = {
    "ranklib": ImportFormat(
        "RankLib's tree ensembles and linear models",
        lambda head: head.lstrip().startswith((*_RANKLIB, b"<?xml", b"<ensemble", b"<!DOCTYPE")),
        "ranklib:read",
    ),
    "onnx": ImportFormat(
        "ONNX tree ensembles",
        # The first field of an ONNX file is the version of its form, a small number; text has no such bytes.
        lambda head: len(head) > 1 and head[0] == 8 and 2 < head[1] < 32,
        "onnx_read:read",
    ),
}


def _function(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(f"gradrank.models.exchange.{module}"), name)
