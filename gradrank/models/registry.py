"""Reading saved rankers: our own files and those of other tools."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from gradrank.data.ranking_data import RankingData
from gradrank.errors import ModelError
from gradrank.models.exchange.catboost_json import is_catboost
from gradrank.models.exchange.registry import IMPORTS
from gradrank.models.exchange.strict_json import parse_json
from gradrank.models.features import columns_by_name
from gradrank.models.nets.tensor_file import is_tensor_file, read_tensor_bytes
from gradrank.models.ranker import FORMAT, VERSION, Ranker

# The one registry: kind in the file -> where its class lives (loaded only when needed).
RANKERS: dict[str, str] = {
    "trees": "gradrank.models.trees.ensemble:TreeEnsemble",
    "linear": "gradrank.models.linear:LinearRanker",
    "feature": "gradrank.models.feature:FeatureRanker",
    "weighted_sum": "gradrank.models.weighted_sum:WeightedSum",
    "expected_grade": "gradrank.models.trees.expected_grade:ExpectedGrade",
    "net": "gradrank.models.nets.net:NetRanker",
}

# Facts about a training are written, shown and compared by functions that call themselves.
_DEEPEST_FACTS = 30
_READABLE = "a file of gradrank, LightGBM, XGBoost, CatBoost, RankLib, or ONNX trees"


def load_ranker(path: str | Path) -> Ranker:
    """Read a ranker that :meth:`Ranker.save` or another tool wrote.

    Parameters
    ----------
    path
        The file: gradrank's JSON or safetensors, the text of LightGBM's ``Booster.save_model``, JSON or UBJSON of
        XGBoost's ``save_model``, JSON of CatBoost's, RankLib's tree ensembles and linear models, or an ONNX tree
        ensemble. The content tells which it is.

    >>> import tempfile
    >>> from gradrank.models.linear import LinearRanker
    >>> path = Path(tempfile.mkdtemp()) / "model.json"
    >>> LinearRanker([1.0, 0.1], feature_names=["a", "b"]).save(path)
    >>> load_ranker(path).predict([[1.0, 10.0]]).tolist()
    [2.0]
    """
    path = Path(path)
    try:
        if path.is_char_device() or path.is_block_device():
            raise ModelError("is a device, expected a file", path=path)
        content = path.read_bytes()
    except FileNotFoundError:
        raise ModelError("there is no such file", path=path) from None
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", path=path) from None
    try:
        return _parse(content)
    except ModelError as error:
        raise ModelError(str(error), path=path) from None


def ranker_from_dict(value: Any) -> Ranker:
    """The inverse of :meth:`Ranker.to_dict`."""
    if not isinstance(value, Mapping) or value.get("format") != FORMAT:
        raise ModelError("is not a gradrank model")
    version = value.get("version")
    if not isinstance(version, int) or version < 1:
        raise ModelError(f"has model version {version!r}, expected a number of 1 to {VERSION}")
    if version > VERSION:
        raise ModelError(f"has model version {version}, this gradrank reads up to {VERSION}: update gradrank")
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in RANKERS:
        raise ModelError(f"holds a ranker of kind {kind!r}, expected one of {', '.join(RANKERS)}")
    module, name = RANKERS[kind].split(":")
    ranker_class: type[Ranker] = getattr(import_module(module), name)
    try:
        names, payload, training = value["feature_names"], value["payload"], value["training"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ModelError("holds feature names that are not a list of strings")
        if not isinstance(training, Mapping) or _depth_above(training, _DEEPEST_FACTS):
            raise ModelError(
                "holds facts about the training that are not a JSON object, "
                f"or one of more than {_DEEPEST_FACTS} levels"
            )
        return ranker_class._from_payload(payload, names, training)
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ModelError(f"holds a damaged ranker of kind {kind!r} ({type(error).__name__}: {error})") from None


def _depth_above(value: Any, most: int) -> bool:
    """Whether lists and mappings stand inside each other more than so many times; found without recursion."""
    level = [value]
    for _ in range(most):
        level = [
            item
            for outer in level
            for item in (outer.values() if isinstance(outer, Mapping) else outer)
            if isinstance(item, Mapping | list)
        ]
        if not level:
            return False
    return True


def under_names_of(ranker: Ranker, data: RankingData) -> Ranker:
    """The ranker under the data's feature names, if its own only number the features (as LightGBM's and XGBoost's do).

    A ranker that does not fit the data's features is a ModelError.

    >>> from gradrank.models.linear import LinearRanker
    >>> data = RankingData.from_arrays([[1.0, 2.0]], qid=[1], feature_names=["bm25", "age"])
    >>> under_names_of(LinearRanker([1.0, 0.5], feature_names=["Column_0", "Column_1"]), data).feature_names
    ('bm25', 'age')
    """
    columns = columns_by_name(data.feature_names, ranker.feature_names)
    if set(ranker.feature_names) <= set(data.feature_names):
        return ranker
    return ranker.renamed(data.feature_names if columns is None else [data.feature_names[place] for place in columns])


def looks_like_model(head: bytes) -> bool:
    """Whether a file that starts so is a model: gradrank's, or of a tool whose models are read.

    >>> looks_like_model(b'{"format": "gradrank-model"'), looks_like_model(b"0.25")
    (True, False)
    """
    if is_tensor_file(head, size=1 << 62) or head.lstrip().startswith((b"tree", b"{")):
        return True
    return any(form.recognized(head) for form in IMPORTS.values())


def _parse(content: bytes) -> Ranker:
    from gradrank.models.trees.ensemble import TreeEnsemble

    if is_tensor_file(content):
        return _of_tensors(content)
    for form in IMPORTS.values():
        if form.recognized(content[:64]):
            return form.read(content)
    start = content[:64].lstrip()
    if start.startswith(b"tree"):
        return TreeEnsemble.from_lightgbm(_text(content))
    if not start.startswith(b"{"):
        raise ModelError(f"is not a model: expected {_READABLE}")
    # UBJSON writes a length byte or marker after the brace where JSON has a quote or white space.
    if start[1:2] not in (b'"', b"\n", b"\r", b" ", b"\t", b"}"):
        return TreeEnsemble.from_xgboost(content)
    value = parse_json(content)
    if is_catboost(value):
        return TreeEnsemble.from_catboost(value)
    if "learner" in value and "format" not in value:
        return TreeEnsemble.from_xgboost(value)
    if "tree_info" in value and "format" not in value:
        raise ModelError("is LightGBM's JSON dump, expected its model as text, which save_model writes")
    if value.get("format") != FORMAT:
        raise ModelError(f"is JSON, but no model: expected {_READABLE}")
    return ranker_from_dict(value)


def _of_tensors(content: bytes) -> Ranker:
    from gradrank.models.nets.net import payload_of_tensors

    manifest, tensors = read_tensor_bytes(content)
    payload = manifest.get("payload")
    if manifest.get("kind") == "module":
        made_of = payload.get("module") if isinstance(payload, dict) else None
        raise ModelError(f"holds the weights of a {made_of}: ModuleRanker.load takes it together with such a module")
    try:
        payload = payload_of_tensors(manifest["payload"], tensors)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise ModelError("is a safetensors file, but not of a whole gradrank net") from None
    return ranker_from_dict({**manifest, "payload": payload})


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ModelError("is not a model: it is not UTF-8 text") from None
