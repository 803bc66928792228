"""Models as safetensors: one file of tensors, with the manifest as its metadata; nothing in it is ever run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import MissingExtraError, ModelError
from gradrank.models.exchange.strict_json import parse_json

_MANIFEST = "gradrank"
_LENGTH_BYTES = 8


def is_tensor_file(content: bytes, size: int | None = None) -> bool:
    """Whether bytes start as safetensors do: the length of a JSON header, then the header.

    >>> is_tensor_file((2).to_bytes(8, "little") + b"{}"), is_tensor_file(b'{"a": 1}        ')
    (True, False)
    """
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    whole = len(content) if size is None else size
    return content[_LENGTH_BYTES : _LENGTH_BYTES + 1] == b"{" and _LENGTH_BYTES + length <= whole


def tensor_bytes(manifest: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> bytes:
    """The content of a file with a manifest of plain values and tensors."""
    save = _package().save
    contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    content: bytes = save(contiguous, metadata={_MANIFEST: json.dumps(manifest, allow_nan=False)})
    return content


def read_tensor_bytes(content: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The inverse of :func:`tensor_bytes`."""
    load = _package().load
    try:
        length = int.from_bytes(content[:_LENGTH_BYTES], "little")
        metadata = json.loads(content[_LENGTH_BYTES : _LENGTH_BYTES + length]).get("__metadata__", {})
        tensors: dict[str, NDArray[Any]] = load(content)
    except Exception as error:  # safetensors has errors of its own, without a common base
        raise ModelError(f"is not a whole safetensors file ({error})") from None
    if _MANIFEST not in metadata:
        raise ModelError("is a safetensors file, but not of a gradrank model")
    manifest = parse_json(metadata[_MANIFEST])
    if not isinstance(manifest, dict):
        raise ModelError("is a safetensors file, but not of a gradrank model")
    return manifest, tensors


def _package() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise MissingExtraError("safetensors", "nets") from None
    return safetensors.numpy
