"""A user's own PyTorch module as a ranker."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from gradrank.errors import MissingExtraError, ModelError
from gradrank.models.features import Matrix
from gradrank.models.nets.scaling import Scaling
from gradrank.models.nets.tensor_file import read_tensor_bytes, tensor_bytes
from gradrank.models.ranker import FORMAT, VERSION, Ranker, plain
from gradrank.runtime.files import replacing
from gradrank.runtime.threads import for_query_blocks

try:
    import torch
except ImportError:
    raise MissingExtraError("torch", "nets") from None

_ROWS_PER_BLOCK = 8192
_WEIGHT, _MEAN, _SCALE = "module.", "scaling.mean", "scaling.scale"


class ModuleRanker(Ranker):
    """A PyTorch module as a ranker: score(x) = module(scaled x).

    Saved as safetensors: the weights by name, with the class's name for people to read. No code is ever loaded from
    the file, so reading it back takes a module of that class: :meth:`load`.

    Parameters
    ----------
    module
        A ``torch.nn.Module`` that gives one number per row.
    feature_names
        Names of the features that it takes.
    scaling
        How features are brought to one scale; not at all unless given.
    training
        Facts about the training.

    >>> module = torch.nn.Linear(2, 1)
    >>> ranker = ModuleRanker(module, feature_names=["bm25", "age"])
    >>> ranker.predict([[0.0, 0.0]]).tolist() == [module.bias.item()]
    True
    """

    kind = "module"

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        feature_names: Sequence[str],
        scaling: Scaling | None = None,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(feature_names, training)
        self.module = module
        self.scaling = scaling or Scaling(np.zeros(self.n_features), np.ones(self.n_features))
        if len(self.scaling.mean) != self.n_features:
            raise ModelError(f"scaling is for {len(self.scaling.mean)} features, {self.n_features} are named")

    def _score(self, X: Matrix, n_jobs: int | None) -> NDArray[np.float64]:
        was_training = self.module.training
        self.module.eval()
        device = next((value.device for value in self.module.parameters()), torch.device("cpu"))
        out = np.empty(len(X), dtype=np.float64)
        edges = np.append(np.arange(0, len(X), _ROWS_PER_BLOCK), len(X))

        def work(first: int, end: int) -> None:
            # Both are settings of the thread at work.
            torch.set_num_threads(1)
            with torch.no_grad():
                for block in range(first, end):
                    rows = slice(edges[block], edges[block + 1])
                    scaled = torch.from_numpy(self.scaling.apply(X[rows])).to(device)
                    out[rows] = scores_of(self.module, scaled).cpu().numpy()

        try:
            with one_thread():
                for_query_blocks(work, edges, n_jobs)
        finally:
            self.module.train(was_training)
        return out

    def save(self, path: str | Path) -> None:
        """Write one safetensors file, or nothing if it fails."""
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "feature_names": list(self.feature_names),
            "training": plain(dict(self.training)),
            "payload": {"module": class_name(self.module), "log": self.scaling.log},
        }
        tensors = {_MEAN: self.scaling.mean, _SCALE: self.scaling.scale}
        for name, value in self.module.state_dict().items():
            tensors[_WEIGHT + name] = value.detach().cpu().numpy()
        content = tensor_bytes(manifest, tensors)
        with replacing(path) as temporary:
            temporary.write_bytes(content)

    @classmethod
    def load(cls, path: str | Path, module: torch.nn.Module) -> Self:
        """Read a saved ranker.

        Parameters
        ----------
        path
            The file that :meth:`save` wrote.
        module
            A module of the class that was saved; a copy of it gets the weights.
        """
        try:
            manifest, tensors = read_tensor_bytes(Path(path).read_bytes())
        except OSError as error:
            raise ModelError(f"cannot be read: {error.strerror}", path=path) from None
        except ModelError as error:
            raise ModelError(str(error), path=path) from None
        if manifest.get("kind") != cls.kind:
            raise ModelError(f"holds a ranker of kind {manifest.get('kind')!r}: load_ranker reads it", path=path)
        module = copy.deepcopy(module)
        weights = {
            name.removeprefix(_WEIGHT): torch.from_numpy(np.array(value))
            for name, value in tensors.items()
            if name.startswith(_WEIGHT)
        }
        try:
            module.load_state_dict(weights)
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            saved = manifest["payload"]["module"]
            raise ModelError(
                f"holds the weights of a {saved}, which do not fit this module: {reason}", path=path
            ) from None
        scaling = Scaling(tensors[_MEAN], tensors[_SCALE], bool(manifest["payload"]["log"]))
        return cls(module, feature_names=manifest["feature_names"], scaling=scaling, training=manifest["training"])

    def renamed(self, feature_names: Sequence[str]) -> ModuleRanker:
        """See Ranker.renamed."""
        return ModuleRanker(self.module, feature_names=feature_names, scaling=self.scaling, training=self.training)

    def to_dict(self) -> NoReturn:
        """A module cannot be part of another ranker's file."""
        raise ModelError(
            "a ranker of a PyTorch module cannot be written as JSON or inside another ranker; save it alone"
        )

    def _part(self, columns: NDArray[np.int64]) -> NoReturn:
        raise ModelError("a PyTorch module cannot be exported here: torch.onnx exports modules")

    def _payload(self) -> dict[str, Any]:
        raise NotImplementedError

    @classmethod
    def _from_payload(
        cls, payload: Mapping[str, Any], feature_names: Sequence[str], training: Mapping[str, Any]
    ) -> Self:
        raise NotImplementedError


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch on one thread: its sums would else depend on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def scores_of(module: torch.nn.Module, X: torch.Tensor) -> torch.Tensor:
    """A module's output, one number per row."""
    scores = module(X)
    if not isinstance(scores, torch.Tensor) or scores.numel() != len(X):
        found = tuple(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
        raise ModelError(f"the module gives {found} for {len(X)} documents, expected one number each")
    return scores.reshape(-1)


def class_name(module: torch.nn.Module) -> str:
    """Where the module's class is defined, for people to read."""
    return f"{type(module).__module__}.{type(module).__qualname__}"
