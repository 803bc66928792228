"""What every ranker can do: score documents, tell its features, and be saved."""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData, rows_alone
from gradrank.errors import ModelError, ScoreError
from gradrank.models.attribution.attribution import Attribution, Reference, only_other
from gradrank.models.attribution.mixtures import OfMixtures
from gradrank.models.display.rankers import ranker_html, trained_by
from gradrank.models.features import Matrix, feature_matrix
from gradrank.runtime.files import replacing
from gradrank.runtime.memory import is_mapped

if TYPE_CHECKING:
    from gradrank.models.exchange.plan import Part
    from gradrank.models.trees.ensemble import TreeEnsemble

FORMAT = "gradrank-model"
VERSION = 1

_BLOCK_BYTES = 1 << 26


class Ranker(ABC):
    """Gives each document a score; documents of a query are shown by descending score.

    A subclass says how it scores a matrix of its own features (:meth:`_score`) and how it turns into
    plain numbers and back (:meth:`_payload`, :meth:`_from_payload`); everything else is here.

    Parameters
    ----------
    feature_names
        Names of the features, in the order of the columns to score.
    training
        Facts about the training, which are saved with the ranker.

    >>> from gradrank.models.linear import LinearRanker
    >>> ranker: Ranker = LinearRanker([2.0, 1.0], feature_names=["a", "b"])
    >>> ranker.predict([[1.0, 0.5]]).tolist()
    [2.5]
    """

    kind: ClassVar[str]
    """Short name of the class in saved files."""

    def __init__(self, feature_names: Sequence[str], training: Mapping[str, Any] | None = None) -> None:
        self._feature_names = tuple(str(name) for name in feature_names)
        twice = [name for name, count in Counter(self._feature_names).items() if count > 1]
        if twice:
            raise ModelError(f"feature name {twice[0]!r} is given twice")
        self._training = dict(training or {})

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the columns to score."""
        return self._feature_names

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self._feature_names)

    @property
    def training(self) -> Mapping[str, Any]:
        """Facts about the training: objective, parameters, learning curves, versions."""
        return self._training

    def remember(self, **facts: Any) -> None:
        """Add to the facts about the training, which are saved with the ranker.

        Parameters
        ----------
        facts
            Names and values: text, numbers, lists and mappings of them.
        """
        self._training.update(facts)

    def predict(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Score of each row of ``X``, in the order in which the rows were given; higher is better.

        Parameters
        ----------
        X
            Ranking data, a numpy array, or a frame of pandas, polars or Arrow. Ranking data and frames are matched by
            feature name; arrays must have the ranker's features in order.
        n_jobs
            Threads to use; all cores by default.
        """
        if isinstance(X, RankingData):
            return X.in_input_order(self.grouped_scores(X, n_jobs=n_jobs))
        return self._finite_scores(self.matrix(X), n_jobs)

    def grouped_scores(self, data: RankingData, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Scores in the data's own order, the documents of a query together; :meth:`predict` has them as given.

        Parameters
        ----------
        data
            The documents; features are matched by name.
        n_jobs
            Threads to use; all cores by default.
        """
        if not is_mapped(data.X):
            return self._finite_scores(self.matrix(data), n_jobs)
        # Features in a file are taken, put into the ranker's order and scored by blocks of rows, never held whole.
        scores = np.empty(data.n_docs)
        step = max(1, _BLOCK_BYTES // max(1, data.X.itemsize * data.n_features))
        for start in range(0, data.n_docs, step):
            rows = slice(start, start + step)
            matrix = self.matrix(rows_alone(data.X[rows], data.feature_names))
            scores[rows] = self._finite_scores(matrix, n_jobs, start)
        return scores

    def _finite_scores(self, X: Matrix, n_jobs: int | None, first: int = 0) -> NDArray[np.float64]:
        """Scores of a matrix, whose first row is document ``first``; one that is no finite number is an error."""
        with np.errstate(over="ignore", invalid="ignore"):
            return finite(self._score(X, n_jobs), first)

    def matrix(self, X: Any) -> Matrix:
        """The ranker's features of the rows of ``X``, as numbers and in its order."""
        return feature_matrix(X, self._feature_names)

    def renamed(self, feature_names: Sequence[str]) -> Ranker:
        """The same ranker under other names for its features.

        Parameters
        ----------
        feature_names
            The new names, in the order of the old ones.

        >>> from gradrank.models.feature import FeatureRanker
        >>> FeatureRanker("f2", feature_names=["f1", "f2"]).renamed(["bm25", "age"]).feature
        'age'
        """
        return self._from_payload(self._payload(), feature_names, self._training)

    # ------------------------------------------------------------------ facts about features
    def used_features(self) -> tuple[str, ...]:
        """Names of the features that can change a score, in order; all of them, unless the kind of ranker tells more.

        >>> from gradrank.models.linear import LinearRanker
        >>> LinearRanker([1.0, 0.0], feature_names=["a", "b"]).used_features()
        ('a',)
        """
        return self._feature_names

    def shape(self) -> dict[str, int | str]:
        """Facts that tell how large the ranker is, such as its number of trees, by name."""
        trees = [tree for ensemble in self.tree_ensembles() for tree in ensemble.trees]
        return {"trees": len(trees), "leaves": sum(tree.n_leaves for tree in trees)} if trees else {}

    def tree_ensembles(self) -> tuple[TreeEnsemble, ...]:
        """The tree ensembles that the ranker is, or is made of; most kinds have none."""
        return ()

    def feature_importance(self, kind: Literal["gain", "split"] = "gain") -> NDArray[np.float64]:
        """Importance of each feature in the trees of the ranker.

        Parameters
        ----------
        kind
            ``gain``: summed gain of the feature's splits; ``split``: how many splits it has.

        >>> from gradrank.models.trees.ensemble import Tree, TreeEnsemble
        >>> stump = Tree.numerical(split_feature=[1], threshold=[0.5], left=[-1], right=[-2], leaf_value=[1.0, 2.0])
        >>> TreeEnsemble([stump, stump], ["a", "b"]).feature_importance("split").tolist()
        [0.0, 2.0]
        """
        if kind not in ("gain", "split"):
            raise ModelError(f"feature importance is {kind!r}, expected 'gain' or 'split'")
        ensembles = self.tree_ensembles()
        if not ensembles:
            raise ModelError(f"importance by {kind} needs a model with trees, this one is of kind {self.kind!r}")
        place = {name: index for index, name in enumerate(self._feature_names)}
        total = np.zeros(self.n_features)
        for ensemble in ensembles:
            columns = np.array([place[name] for name in ensemble.feature_names])
            for tree in ensemble.trees:
                amount = tree.split_gain if kind == "gain" else np.ones(tree.n_nodes)
                np.add.at(total, columns[tree.split_feature], amount)
        return total

    def importances(self) -> NDArray[np.float64] | None:
        """Share of each feature in what the ranker has learned, adding up to 1; None where no such share is known."""
        amounts = self._importance_amounts()
        if amounts is None:
            return None
        total = float(amounts.sum())
        return amounts / total if total > 0.0 else amounts

    def _importance_amounts(self) -> NDArray[np.float64] | None:
        """What the shares of :meth:`importances` are made of."""
        return None

    # ------------------------------------------------------------------ differences of scores, feature by feature
    def attribution(self, X: Any, *, reference: Reference | None = None, n_jobs: int | None = None) -> Attribution:
        """How much each feature adds to the difference of any two scores of ``X``; :func:`~gradrank.explain` shows it.

        Parameters
        ----------
        X, n_jobs
            As :meth:`predict` takes them; the documents keep the order of a matrix, or of the data's queries.
        reference
            What a feature that is left out counts as: as in the ``training`` documents on average, or as in the
            ``other`` document of a pair. The first unless given, where the ranker knows its training documents.

        >>> from gradrank.models.linear import LinearRanker
        >>> shares = LinearRanker([2.0, 1.0]).attribution([[1.0, 0.0], [0.5, 3.0]])
        >>> shares.between(np.array([0]), np.array([1])).tolist()
        [[1.0, -3.0]]
        """
        return self._attribution(self.matrix(X), reference, n_jobs)

    def _attribution(self, X: Matrix, reference: Reference | None, n_jobs: int | None) -> Attribution:
        """The same for a matrix that has exactly this ranker's features."""
        only_other(reference, f"a ranker of kind {self.kind!r}")
        return OfMixtures(X, lambda rows: self.predict(rows, n_jobs=n_jobs))

    @abstractmethod
    def _score(self, X: Matrix, n_jobs: int | None) -> NDArray[np.float64]:
        """Scores of a matrix that has exactly this ranker's features."""

    @abstractmethod
    def _payload(self) -> dict[str, Any]:
        """The ranker's numbers as plain dicts, lists, strings and numbers."""

    @classmethod
    @abstractmethod
    def _from_payload(
        cls, payload: Mapping[str, Any], feature_names: Sequence[str], training: Mapping[str, Any]
    ) -> Self:
        """The inverse of :meth:`_payload`."""

    def to_dict(self) -> dict[str, Any]:
        """The whole ranker as plain values: a manifest, then the payload."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "feature_names": list(self._feature_names),
            "training": plain(self._training),
            "payload": self._payload(),
        }

    def save(self, path: str | Path) -> None:
        """Write one UTF-8 JSON file, or nothing if it fails; numbers come back exactly.

        Parameters
        ----------
        path
            The file; :func:`~gradrank.load_ranker` reads it.
        """
        text = _readable_json(self.to_dict())
        with replacing(path) as temporary:
            try:
                temporary.write_text(text, encoding="utf-8")
            except OSError as error:  # the disk is full, or was taken away
                raise ModelError(f"cannot be written: {error.strerror or error}", path=path) from None

    def sha256(self) -> str:
        """The hash of the file that :meth:`save` writes as JSON; exported files carry it."""
        return hashlib.sha256(_readable_json(self.to_dict()).encode()).hexdigest()

    def export(
        self, path: str | Path, format: str, *, approximate: bool = False, name: str | None = None
    ) -> tuple[str, ...]:
        """Write the ranker for another tool, or nothing if its format cannot hold the model.

        Parameters
        ----------
        path
            The file to write.
        format
            Name of the format; ``gradrank export --help`` lists them.
        approximate
            Whether to do the nearest thing where the format cannot hold something, such as missing values; each such
            thing is warned of. It is an error otherwise.
        name
            Name of the model in the file, where the format has room for one; its class unless given.

        Returns
        -------
        Notes about the file that its user should know, a sentence each.

        >>> import tempfile
        >>> from gradrank.models.feature import FeatureRanker
        >>> path = Path(tempfile.mkdtemp()) / "model.py"
        >>> FeatureRanker("price", sign=-1).export(path, "python")
        ()
        >>> module = {}
        >>> exec(path.read_text(), module)
        >>> module["score"]({"price": 2.0})
        -2.0
        """
        from gradrank.models.exchange.export import export_ranker

        return export_ranker(self, path, format, approximate=approximate, name=name)

    def _part(self, columns: NDArray[np.int64]) -> Part:
        """What the ranker is made of, for writers of other formats; its feature j is feature ``columns[j]`` there."""
        raise ModelError(f"a ranker of kind {self.kind!r} cannot be exported")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._described()}{trained_by(self._training)})"

    def _described(self) -> str:
        """The size of the ranker in a few words, for a line of text."""
        return f"{self.n_features:,} features"

    def _repr_html_(self) -> str:
        return ranker_html(self)


def finite(scores: NDArray[np.float64], first: int = 0) -> NDArray[np.float64]:
    """The scores, or a ScoreError: those that are no finite numbers have no order."""
    known = np.isfinite(scores)
    if not known.all():
        place = int(np.argmin(known))
        raise ScoreError(
            f"document {first + place + 1} gets the score {scores[place]}, which is not a finite number: "
            "features are too large"
        )
    return scores


# ---------------------------------------------------------------------- plain values
def plain(value: Any) -> Any:
    """Values as JSON has them; numbers that JSON lacks become the strings that ``float`` reads.

    >>> plain({"a": np.float32(0.5), "b": np.array([1, 2]), "c": float("nan")})
    {'a': 0.5, 'b': [1, 2], 'c': 'nan'}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value)


def _readable_json(value: Any, depth: int = 0) -> str:
    """JSON with one line for each entry of the outer levels and for each part of a model."""
    inner_dict = isinstance(value, dict) and depth < 2
    inner_list = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
    if inner_dict:
        rows = [f"{json.dumps(key)}: {_readable_json(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + "\n}"
    if inner_list:
        return "[\n" + ",\n".join(_readable_json(item, depth + 1) for item in value) + "\n]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
