"""A sum of regression trees: the ranker that LambdaMART, MART, LightGBM and XGBoost train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradrank.data.ranking_data import RankingData, default_feature_names
from gradrank.errors import ModelError
from gradrank.models.attribution.attribution import Attribution, ByDocument, ByPair, Reference
from gradrank.models.attribution.tree_pairs import pair_shares
from gradrank.models.categories import Categories
from gradrank.models.exchange.catboost_json import parse_catboost
from gradrank.models.exchange.lightgbm_text import format_lightgbm, parse_lightgbm, read_booster_tree
from gradrank.models.exchange.plan import TreesPart, renumbered
from gradrank.models.exchange.sklearn_trees import parse_sklearn
from gradrank.models.exchange.xgboost_model import parse_xgboost
from gradrank.models.features import Matrix, feature_matrix
from gradrank.models.ranker import Ranker
from gradrank.models.trees.quickscorer import DOCUMENTS_PER_BLOCK, QuickScorer
from gradrank.models.trees.side_by_side import SideBySideWalker
from gradrank.models.trees.tree import CATEGORICAL, Tree, TreeArrays, read_only
from gradrank.runtime.threads import for_query_blocks, thread_count

__all__ = ["Tree", "TreeEnsemble", "assign_leaves", "read_booster_tree"]

# The fast scorer works on 64 documents at once, whether they are there or not; walking is cheaper for a few of them,
# and for trees so large that a document sees only few of their nodes. Measured: a node costs the fast scorer 9 ns per
# block, a step down a tree 3.5 ns per document if several trees are walked side by side.
_BLOCK_NODE_COST = 9.0
_WALK_STEP_COST = 3.5
_MADE_AT_FIRST_USE = ("arrays", "scorer", "_walker")
_TREE_SHAP = (
    "trees: Tree SHAP as LightGBM has it, one document's values minus the other's; a feature that is left out takes "
    "both branches of a split, weighed by their training documents"
)
_TREE_PAIRS = (
    "trees: Shapley values between the two documents; a feature that is left out has the other document's value"
)
_OPTIONAL = {"cat_start", "cat_words", "split_gain", "leaf_cover"}


class TreeEnsemble(Ranker):
    """A sum of regression trees, as LambdaMART, LightGBM and XGBoost train them.

    score(x) = base_score + Σ_t value of the leaf of tree t that x reaches, added in this order in float64.

    Parameters
    ----------
    trees
        The trees, in the order of the sum.
    feature_names
        Names of the features that the trees split by.
    weights
        A factor for each tree.
    base_score
        The constant that the sum starts from.
    categories
        How the values of categorical columns are numbered, if the trees were trained on such.
    training
        Facts about the training.

    >>> stump = Tree.numerical(split_feature=[0], threshold=[0.5], left=[-1], right=[-2], leaf_value=[1.0, 2.0])
    >>> model = TreeEnsemble([stump, stump], feature_names=["a"])
    >>> model.predict([[0.5], [0.6]]).tolist()
    [2.0, 4.0]
    >>> model.truncate(1).predict([[0.6]]).tolist()
    [2.0]
    """

    kind = "trees"

    def __init__(
        self,
        trees: Sequence[Tree],
        feature_names: Sequence[str],
        *,
        weights: ArrayLike | None = None,
        base_score: float = 0.0,
        categories: Categories | None = None,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(feature_names, training)
        for tree in trees:
            tree.check(self.n_features)
        if weights is not None:
            factors = np.asarray(weights, dtype=np.float64)
            if factors.shape != (len(trees),):
                raise ModelError(f"there are {factors.size} weights for {len(trees)} trees")
            trees = [tree.scaled(float(factor)) for tree, factor in zip(trees, factors, strict=True)]
        self._trees = tuple(trees)
        self._base_score = float(base_score)
        if not np.isfinite(self._base_score):
            raise ModelError(f"base_score is {base_score}, expected a finite number")
        self._categories = categories
        if categories is not None and max(categories.columns or (), default=-1) >= self.n_features:
            raise ModelError(f"feature number {max(categories.columns or ())} has categories, but there is none")

    # ------------------------------------------------------------------ facts
    @property
    def trees(self) -> tuple[Tree, ...]:
        """The trees, in the order of the sum."""
        return self._trees

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self._trees)

    @property
    def base_score(self) -> float:
        """The constant that the sum starts from."""
        return self._base_score

    @property
    def categories(self) -> Categories | None:
        """The values of categorical columns that the ensemble was trained on, if any."""
        return self._categories

    @cached_property
    def arrays(self) -> TreeArrays:
        """All trees as flat arrays."""
        return TreeArrays.of(self._trees)

    @cached_property
    def scorer(self) -> QuickScorer | None:
        """The fast scorer, made at first use; None if the trees are too deep for it."""
        return QuickScorer.of(self.arrays, self._base_score)

    @cached_property
    def _walker(self) -> SideBySideWalker | None:
        """The scorer for few documents, made at first use; None if some node needs more than one comparison."""
        return SideBySideWalker.of(self.arrays, self._base_score, self.n_features)

    @cached_property
    def _worth_walking(self) -> float:
        """How many documents cost as much to walk as one block of the fast scorer."""
        n_nodes = sum(tree.n_nodes for tree in self._trees)
        steps = sum(np.log2(tree.n_leaves) for tree in self._trees)
        return float(_BLOCK_NODE_COST * n_nodes / (_WALK_STEP_COST * steps)) if steps else 1.0

    @cached_property
    def _always_finite(self) -> bool:
        largest = float(np.abs(self.arrays.leaf_value).max(initial=0.0))
        return bool(np.isfinite(self.n_trees * largest + abs(self._base_score)))

    # ------------------------------------------------------------------ scoring
    def _score(self, X: Matrix, n_jobs: int | None) -> NDArray[np.float64]:
        n_docs = len(X)
        many = n_docs > self._worth_walking * -(-n_docs // DOCUMENTS_PER_BLOCK)
        if many and self.scorer is not None:
            return self.scorer.score(X, n_jobs)
        walker = self._walker
        if walker is not None:
            return walker.score(X, n_jobs)
        # The plain walk takes more than three times as long.
        if n_docs > self._worth_walking / 3.0 and self.scorer is not None:
            return self.scorer.score(X, n_jobs)
        out = np.empty(n_docs, dtype=np.float64)
        edges = _block_edges(n_docs)

        def work(first: int, end: int) -> None:
            rows = slice(edges[first], edges[end])
            self.arrays.walk_sum(read_only(np.ascontiguousarray(X[rows])), self._base_score, out[rows])

        for_query_blocks(work, edges, n_jobs)
        return out

    def _finite_scores(self, X: Matrix, n_jobs: int | None, first: int = 0) -> NDArray[np.float64]:
        # No document can get more than the largest leaf of every tree: nothing to look for in most models.
        return self._score(X, n_jobs) if self._always_finite else super()._finite_scores(X, n_jobs, first)

    def score_by_walking(self, X: Any) -> NDArray[np.float64]:
        """The same scores by plain walks down the trees: slow, and what the fast scorer is tested against."""
        matrix = self.matrix(X)
        out = np.empty(len(matrix), dtype=np.float64)
        self.arrays.walk_sum(read_only(np.ascontiguousarray(matrix)), self._base_score, out)
        return out

    def predict_leaf(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.int32]:
        """The number of the leaf that each document reaches in each tree, documents × trees, in the order given.

        Parameters
        ----------
        X, n_jobs
            As :meth:`predict` takes them.
        """
        matrix = self.matrix(X)
        out = np.empty((len(matrix), self.n_trees), dtype=np.int32)
        arrays, edges = self.arrays, _block_edges(len(matrix))

        def work(first: int, end: int) -> None:
            rows = slice(edges[first], edges[end])
            arrays.walk_leaves(read_only(np.ascontiguousarray(matrix[rows])), out[rows])

        for_query_blocks(work, edges, n_jobs)
        return X.in_input_order(out) if isinstance(X, RankingData) else out

    def contributions(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Each feature's share in each score (Tree SHAP, Lundberg et al. 2018), documents × (features + 1).

        Rows are in the order given and add up to the score; the last column is the mean score over the training
        documents.

        Parameters
        ----------
        X, n_jobs
            As :meth:`predict` takes them.
        """
        shares = self._tree_shap(self.matrix(X), n_jobs)
        return X.in_input_order(shares) if isinstance(X, RankingData) else shares

    def _tree_shap(self, X: Matrix, n_jobs: int | None) -> NDArray[np.float64]:
        import lightgbm

        if not self._covers_known:
            raise ModelError("contributions need the number of training documents in each leaf, which is unknown here")
        # Numbers for names: LightGBM has rules for these, and they do not matter here.
        text = format_lightgbm(self._trees, default_feature_names(self.n_features), self._base_score)
        booster = lightgbm.Booster(model_str=text)
        threads = thread_count(n_jobs)
        return np.asarray(booster.predict(X, pred_contrib=True, num_threads=threads), dtype=np.float64)

    def _attribution(self, X: Matrix, reference: Reference | None, n_jobs: int | None) -> Attribution:
        if reference == "training" or (reference is None and self._covers_known):
            return ByDocument(self._tree_shap(X, n_jobs)[:, :-1], [_TREE_SHAP])
        return ByPair(len(X), self.n_features, lambda a, b: pair_shares(self.arrays, X, a, b, n_jobs), [_TREE_PAIRS])

    @cached_property
    def _covers_known(self) -> bool:
        """Whether every node tells how many training documents came to it."""
        return all((tree.leaf_cover >= 0).all() and (tree.node_cover() > 0).all() for tree in self._trees)

    # ------------------------------------------------------------------ facts about features
    def used_features(self) -> tuple[str, ...]:
        """Names of the features that some tree splits by."""
        used = set(self.arrays.split_feature.tolist())
        return tuple(name for index, name in enumerate(self.feature_names) if index in used)

    def tree_ensembles(self) -> tuple[TreeEnsemble, ...]:
        """Itself."""
        return (self,)

    def matrix(self, X: Any) -> Matrix:
        """The ranker's features of the rows of ``X``; values of categorical columns of a frame become their codes."""
        return feature_matrix(X, self.feature_names, self._categories)

    def _importance_amounts(self) -> NDArray[np.float64]:
        gains = self.feature_importance("gain")
        # Trees of other tools, and stumps of feature boosting, may not tell their gains.
        return gains if gains.any() else self.feature_importance("split")

    # ------------------------------------------------------------------ derived
    def truncate(self, n_trees: int) -> TreeEnsemble:
        """The ensemble of the first trees.

        Parameters
        ----------
        n_trees
            How many trees to keep.
        """
        if not 0 <= n_trees <= self.n_trees:
            raise ModelError(f"cannot keep {n_trees} trees of {self.n_trees}")
        return self.with_trees(self._trees[:n_trees])

    def with_trees(self, trees: Sequence[Tree], *, training: Mapping[str, Any] | None = None) -> TreeEnsemble:
        """The same ensemble with other trees, and other facts about its training if given."""
        return TreeEnsemble(
            trees,
            self.feature_names,
            base_score=self._base_score,
            categories=self._categories,
            training=self.training if training is None else training,
        )

    # ------------------------------------------------------------------ other tools' formats
    @classmethod
    def from_lightgbm(cls, model: Any, *, training: Mapping[str, Any] | None = None) -> TreeEnsemble:
        """From a ``lightgbm.Booster``, a fitted ``LGBMModel``, or the text of a model file.

        Scores equal ``predict(raw_score=True)``; like it, a booster's trees after the best iteration are left out.
        Categorical columns of a pandas frame it was trained on are known by their values.

        Parameters
        ----------
        model
            The booster or estimator, or the text of a model file.
        training
            Facts about the training; the objective and the source unless given.
        """
        parsed = parse_lightgbm(lightgbm_text(model))
        if parsed.trees_per_iteration != 1:
            raise ModelError(
                f"is a LightGBM model of {parsed.trees_per_iteration} classes, expected one score per document"
            )
        facts = {"objective": parsed.objective, "source": "lightgbm"} if training is None else training
        return cls(parsed.trees, parsed.feature_names, categories=parsed.categories, training=facts)

    @classmethod
    def from_xgboost(cls, model: Any, *, training: Mapping[str, Any] | None = None) -> TreeEnsemble:
        """From an ``xgboost.Booster`` or ``XGBModel``, or what its ``save_model`` wrote (JSON or UBJSON).

        Scores equal ``XGBModel.predict(output_margin=True)``, up to XGBoost's rounding to float32. As there, early
        stopping cuts the trees after the best iteration (a booster's own ``predict`` has all of them).

        Parameters
        ----------
        model
            The booster or estimator, or the bytes, text or parsed JSON of a model file.
        training
            Facts about the training; the objective and the source unless given.
        """
        if hasattr(model, "get_booster"):
            model = model.get_booster()
        if hasattr(model, "save_raw"):
            model = bytes(model.save_raw("json"))
        parsed = parse_xgboost(model)
        facts: Mapping[str, Any] = {"objective": parsed.objective, "source": "xgboost"}
        if parsed.best is not None:
            facts = {**facts, "best": parsed.best, "grown": parsed.grown}
        return cls(
            parsed.trees,
            parsed.feature_names,
            base_score=parsed.base_score,
            training=facts if training is None else training,
        )

    @classmethod
    def from_catboost(cls, model: Any, *, training: Mapping[str, Any] | None = None) -> TreeEnsemble:
        """From a fitted model of CatBoost, or what its ``save_model(format="json")`` wrote.

        Scores equal ``predict(prediction_type="RawFormulaVal")`` up to rounding in the last place.

        Parameters
        ----------
        model
            The model, or the bytes, text or parsed JSON of a model file.
        training
            Facts about the training; the source unless given.
        """
        parsed = parse_catboost(model)
        facts = {"source": "catboost"} if training is None else training
        return cls(parsed.trees, parsed.feature_names, base_score=parsed.base_score, training=facts)

    @classmethod
    def from_sklearn(cls, model: Any, *, training: Mapping[str, Any] | None = None) -> TreeEnsemble:
        """From a fitted HistGradientBoosting model of scikit-learn, without categorical features.

        Scores equal a regressor's ``predict`` or a two-class classifier's ``decision_function``, bit for bit.

        Parameters
        ----------
        model
            The fitted model.
        training
            Facts about the training; the source unless given.
        """
        parsed = parse_sklearn(model)
        facts = {"source": "scikit-learn"} if training is None else training
        return cls(parsed.trees, parsed.feature_names, base_score=parsed.base_score, training=facts)

    def to_lightgbm_text(self) -> str:
        """A LightGBM model file with the same predictions, bit for bit."""
        return format_lightgbm(self._trees, self.feature_names, self._base_score, self._categories)

    def _part(self, columns: NDArray[np.int64]) -> TreesPart:
        categories = self._categories
        if categories is not None and categories.columns is not None:
            categories = replace(categories, columns=tuple(columns[list(categories.columns)].tolist()))
        return TreesPart(tuple(renumbered(tree, columns) for tree in self._trees), self._base_score, categories)

    # ------------------------------------------------------------------ saving
    def __getstate__(self) -> dict[str, Any]:
        # What is made at first use is cheaper to make again than to send to another process.
        return {name: value for name, value in self.__dict__.items() if name not in _MADE_AT_FIRST_USE}

    def _payload(self) -> dict[str, Any]:
        return {
            "base_score": self._base_score,
            **({} if self._categories is None else {"categories": self._categories.to_dict()}),
            "trees": [
                {
                    name: getattr(tree, name).tolist()
                    for name in tree.__dataclass_fields__
                    if name not in _OPTIONAL or _worth_saving(tree, name)
                }
                for tree in self._trees
            ],
        }

    @classmethod
    def _from_payload(
        cls, payload: Mapping[str, Any], feature_names: Sequence[str], training: Mapping[str, Any]
    ) -> Self:
        trees = [Tree.of(**tree) for tree in payload["trees"]]
        categories = Categories.from_dict(payload["categories"]) if "categories" in payload else None
        return cls(trees, feature_names, base_score=payload["base_score"], categories=categories, training=training)

    def _described(self) -> str:
        return f"{self.n_trees:,} trees, {self.n_features:,} features"


def _worth_saving(tree: Tree, name: str) -> bool:
    if name.startswith("cat_"):
        return bool((tree.decision & CATEGORICAL).any())
    return bool(getattr(tree, name).any())


def lightgbm_text(model: Any) -> str:
    """The text of a LightGBM model given as text, booster or fitted scikit-learn estimator."""
    if isinstance(model, str):
        return model
    booster = getattr(model, "booster_", model)
    if not hasattr(booster, "model_to_string"):
        raise ModelError(f"cannot read a LightGBM model from {type(model).__name__}")
    return str(booster.model_to_string())


def _block_edges(n_docs: int) -> NDArray[np.int64]:
    return np.append(np.arange(0, n_docs, DOCUMENTS_PER_BLOCK), n_docs)


def assign_leaves(tree: Tree, X: NDArray[Any], *, n_jobs: int | None = None) -> NDArray[np.int32]:
    """The leaf of one tree that each row of a float32 or float64 matrix reaches.

    A tree whose leaf values are the leaves' numbers scores each row with its leaf.

    Parameters
    ----------
    tree
        The tree.
    X
        The matrix; column-major ones are read three times as fast as row-major ones.
    n_jobs
        Threads to use; all cores by default.

    >>> stump = Tree.numerical(split_feature=[0], threshold=[0.5], left=[-1], right=[-2], leaf_value=[1.0, 2.0])
    >>> assign_leaves(stump, np.array([[0.4], [0.6]], dtype=np.float32)).tolist()
    [0, 1]
    """
    numbered = replace(tree, leaf_value=np.arange(tree.n_leaves, dtype=np.float64))
    arrays = TreeArrays.of([numbered])
    scorer = QuickScorer.of(arrays)
    if scorer is not None:
        return scorer.score(X, n_jobs).astype(np.int32)
    leaves = np.empty((len(X), 1), dtype=np.int32)
    arrays.walk_leaves(read_only(np.ascontiguousarray(X)), leaves)
    return leaves[:, 0]
