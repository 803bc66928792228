"""Growing symmetric trees: all nodes of a level split by one feature at one threshold.

A symmetric tree of depth d has 2^d leaves and only d splits, each chosen for all of its level's nodes together:

    score(f, t) = Σ over nodes of  (Σ_left λ)²/(Σ_left ρ + c)  +  (Σ_right λ)²/(Σ_right ρ + c),

ρ = 1 for splits by least squares. So it learns less by heart than a tree whose nodes choose for themselves. They are
the trees of CatBoost (Prokhorenkova, Gusev, Vorobev, Dorogush, Gulin 2018); LightGBM cannot grow them.

Histograms of λ and ρ are kept for each feature, node and bin. A level fills those of the smaller child of each node,
and the other child has what is left. A feature is summed by one thread in the order of the documents, so that trees are
the same for any number of threads; several processes add theirs up, which is exact for the λ's of a crew, each for its
share of the features, and tell one another the best threshold of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradrank.data.ranking_data import RankingData
from gradrank.errors import TrainingError
from gradrank.learners.base.crew import ALONE, Crew
from gradrank.learners.base.monitor import TRAINING
from gradrank.learners.trees.feature_bins import FeatureBins
from gradrank.learners.trees.grower import separate_sets
from gradrank.learners.trees.parameters import TreeParameters
from gradrank.models.trees.ensemble import Tree, assign_leaves
from gradrank.runtime.kernels import njit
from gradrank.runtime.memory import is_mapped
from gradrank.runtime.threads import for_query_blocks

Floats = NDArray[np.float32]
# Improvements below this share of the score are rounding.
_LEAST_GAIN = 1e-9
_LARGEST = np.finfo(np.float64).max


class _Split(NamedTuple):
    feature: int
    threshold: int
    """Its number among the feature's; −1 sends what is missing to the left and nothing else."""
    gain: float


class SymmetricGrower:
    """Grows a symmetric tree for given gradients; its leaf values are 0 and meant to be set.

    Parameters
    ----------
    data
        Its features are binned once.
    parameters
        Bins, features per tree, seed and threads.
    depth
        Most levels.
    split
        Rule of the splits: ``mse`` or ``newton``.
    reg_lambda
        Added to the denominator of the score by Newton's rule.
    watched
        Further data sets by name, whose leaves are asked for.
    crew
        The processes that train together.
    share_binning
        A grower of the same data, whose bins are used again.
    """

    def __init__(
        self,
        data: RankingData,
        parameters: TreeParameters,
        *,
        depth: int,
        split: str,
        reg_lambda: float = 0.0,
        watched: Mapping[str, RankingData] | None = None,
        crew: Crew = ALONE,
        share_binning: SymmetricGrower | None = None,
    ) -> None:
        self._newton = split == "newton"
        self._added = float(reg_lambda) if self._newton else 0.0
        self._parameters = parameters
        self._depth = depth
        self._crew = crew
        if share_binning is None:
            self._binned = FeatureBins.of(
                data, int(parameters.max_bin), random_state=parameters.random_state, n_jobs=parameters.n_jobs, crew=crew
            )
        else:
            self._binned = share_binning._binned
        # Those that lie in files are read once, not once per tree.
        jobs = parameters.n_jobs
        self._watched = {
            name: self._binned.like(each, n_jobs=jobs).bins if is_mapped(each.X) else each
            for name, each in separate_sets(data, watched or {}).items()
            if name != TRAINING
        }
        ranges = np.array(crew.gather(self._binned.ranges))
        self._usable = np.flatnonzero(ranges[:, 0].min(axis=0) < ranges[:, 1].max(axis=0))
        if not len(self._usable):
            raise TrainingError("no feature has two values that trees can tell apart")
        self._wide = max((len(each) for each in self._binned.thresholds), default=0) + 2
        self._leaf = np.zeros(data.n_docs, dtype=np.int32)
        self._splits: list[_Split] = []

    def grow(self, lambdas: Floats, rhos: Floats, step: int) -> Tree:
        """Grow the tree of step ``step`` that fits the λ's: by least squares, or by Newton gain with ρ."""
        # Documents of queries that have no say in this step, and those that push nothing, need no sums.
        rows = np.flatnonzero((lambdas != 0.0) | (rhos != 0.0)).astype(np.int32)
        force = lambdas[rows]
        bend = rhos[rows] if self._newton else np.ones(len(rows), dtype=np.float32)
        node = np.zeros(len(rows), dtype=np.uint8)
        level = _Level(self, self._features(step))
        total = self._crew.sum(np.array([force.sum(dtype=np.float64), bend.sum(dtype=np.float64)]))
        score = float(total[0] ** 2 / (total[1] + self._added)) if total[1] + self._added > 0.0 else 0.0
        splits: list[_Split] = []
        filled, smaller = np.arange(len(rows), dtype=np.int32), np.zeros(1, dtype=np.uint8)
        while len(splits) < self._depth:
            parent = node[filled] >> np.uint8(1 if splits else 0)
            best, feature, threshold = level.best(rows[filled], parent, force[filled], bend[filled], smaller)
            if not best - score > _LEAST_GAIN * abs(score):
                break
            splits.append(_Split(feature, threshold, best - score))
            score = best
            counts = np.zeros((len(smaller) if len(splits) == 1 else 2 * len(smaller), 2))
            _send(self._binned.bins[feature], rows, threshold + 1, node, counts)
            # The same child in all processes.
            counts = self._crew.sum(counts)
            smaller = (counts[:, 1] < counts[:, 0]).astype(np.uint8)
            filled = np.flatnonzero((node & 1) == smaller[node >> 1]).astype(np.int32)
        self._splits = splits
        self._leaf = self._leaves_of(self._binned.bins)
        return self._tree(splits) if splits else Tree.of(leaf_value=[0.0])

    def leaves(self, tree: Tree) -> dict[str, NDArray[np.int32]]:
        """The leaf of the tree grown last that each document reaches, for the training data and the watched sets."""
        found = {TRAINING: self._leaf}
        for name, data in self._watched.items():
            if isinstance(data, RankingData):
                found[name] = assign_leaves(tree, data.X, n_jobs=self._parameters.n_jobs)
            else:
                found[name] = self._leaves_of(data)
        return found

    def _leaves_of(self, bins: NDArray[np.uint8]) -> NDArray[np.int32]:
        """The leaf of the tree grown last that each document reaches, of the bins of all documents."""
        leaf = np.zeros(bins.shape[1], dtype=np.int32)
        for split in self._splits:
            _descend(bins[split.feature], split.threshold + 1, leaf)
        return leaf

    def _features(self, step: int) -> NDArray[np.int64]:
        """The features that this step's tree may use, of those that tell documents apart."""
        share, usable = self._parameters.colsample_bytree, self._usable
        if share >= 1.0:
            return usable
        rng = np.random.default_rng([self._parameters.random_state, step, 1])
        return np.sort(rng.choice(usable, max(1, round(share * len(usable))), replace=False))

    def _tree(self, splits: list[_Split]) -> Tree:
        depth = len(splits)
        nodes = (1 << depth) - 1
        child = 2 * np.arange(nodes) + 1
        level = np.repeat(np.arange(depth), 1 << np.arange(depth))
        thresholds = self._binned.thresholds
        threshold = [thresholds[it.feature][it.threshold] if it.threshold >= 0 else -_LARGEST for it in splits]
        made = Tree.numerical(
            split_feature=np.array([split.feature for split in splits])[level],
            threshold=np.array(threshold)[level],
            left=np.where(child < nodes, child, ~(child - nodes)),
            right=np.where(child + 1 < nodes, child + 1, ~(child + 1 - nodes)),
            leaf_value=np.zeros(nodes + 1),
        )
        # What a level improves is spread over its nodes.
        gain = np.array([split.gain for split in splits])[level] / (1 << level)
        cover = np.bincount(self._leaf, minlength=nodes + 1).astype(np.float64)
        return replace(made, split_gain=gain, leaf_cover=cover)


class _Level:
    """The histograms of one tree, level after level: of the features that this process answers for."""

    def __init__(self, grower: SymmetricGrower, features: NDArray[np.int64]) -> None:
        self._features, self._crew, self._added = features, grower._crew, grower._added
        self._binned, self._wide, self._jobs = grower._binned, grower._wide, grower._parameters.n_jobs
        self._shares = np.array_split(np.arange(len(features)), self._crew.size)
        self._nodes = 1
        own = self._shares[self._crew.rank]
        self._sums = np.zeros((len(own), 1 << max(grower._depth - 1, 0), self._wide, 2))

    def best(
        self,
        rows: NDArray[np.int32],
        parent: NDArray[np.uint8],
        force: Floats,
        bend: Floats,
        smaller: NDArray[np.uint8],
    ) -> tuple[float, int, int]:
        """The best score of all features and thresholds, the first of equals, and where it is.

        Parameters
        ----------
        rows, force, bend
            The documents of the smaller child of each node of the level before, or all at the root; their λ and ρ.
        parent
            The node that each was in.
        smaller
            For each of these nodes whether the smaller child is the left (0) or the right one (1).
        """
        features, binned = self._features, self._binned
        fresh = np.zeros((len(features), len(smaller), self._wide, 2))

        def fill(first: int, end: int) -> None:
            for place in range(first, end):
                _fill(binned.bins[features[place]], rows, parent, force, bend, fresh[place])

        for_query_blocks(fill, np.arange(len(features) + 1) * max(len(rows), 1), self._jobs)
        fresh = self._crew.sum_shares([fresh[share] for share in self._shares])
        own = self._shares[self._crew.rank]
        best, at = np.full(len(own), -np.inf), np.zeros(len(own), dtype=np.int64)
        root = self._nodes == 1

        def score(first: int, end: int) -> None:
            for place in range(first, end):
                wide = len(binned.thresholds[features[own[place]]]) + 2
                scores = np.zeros(wide - 1)
                best[place], at[place] = _spread_and_score(
                    root, fresh[place], smaller, self._sums[place], wide, self._added, scores
                )

        for_query_blocks(score, np.arange(len(own) + 1) * self._nodes * self._wide, self._jobs)
        self._nodes *= 2
        every_best = np.concatenate(self._crew.gather(best))
        every_at = np.concatenate(self._crew.gather(at))
        chosen = int(np.argmax(every_best))
        return float(every_best[chosen]), int(features[chosen]), int(every_at[chosen])


@njit(cache=True, nogil=True, plain=True)
def _fill(bins, rows, parent, force, bend, fresh):  # type: ignore[no-untyped-def]
    """Add λ and ρ of documents to the histogram of their node."""
    for k in range(len(rows)):
        node, at = parent[k], bins[rows[k]]
        fresh[node, at, 0] += force[k]
        fresh[node, at, 1] += bend[k]


@njit(cache=True, nogil=True, plain=True)
def _spread_and_score(root, fresh, smaller, sums, wide, added, scores):  # type: ignore[no-untyped-def]
    """Make a level's histograms of one feature of those of the level before, and score all its thresholds.

    ``fresh[p]`` is the histogram of the smaller child of node p, or of the root; ``scores`` holds zeros. Returns the
    best score and its threshold, the first of equals; threshold −1 is before the first.
    """
    before = len(smaller)
    if root:
        # Number by number: to say which shapes do not fit, assigning slices compiles for seconds.
        for b in range(wide):
            for c in range(2):
                sums[0, b, c] = fresh[0, b, c]
    else:
        # The children of node p are 2p and 2p + 1: from the last on nothing that is still needed is written over.
        for p in range(before - 1, -1, -1):
            small = 2 * p + smaller[p]
            large = 2 * p + 1 - smaller[p]
            for b in range(wide):
                for c in range(2):
                    rest = sums[p, b, c] - fresh[p, b, c]
                    sums[small, b, c] = fresh[p, b, c]
                    sums[large, b, c] = rest
    for node in range(1 if root else 2 * before):
        total, total_bend = 0.0, 0.0
        for b in range(wide):
            total += sums[node, b, 0]
            total_bend += sums[node, b, 1]
        left, left_bend = 0.0, 0.0
        for b in range(wide - 1):
            left += sums[node, b, 0]
            left_bend += sums[node, b, 1]
            below = left_bend + added
            above = total_bend - left_bend + added
            if below > 1e-12:
                scores[b] += left * left / below
            if above > 1e-12:
                scores[b] += (total - left) * (total - left) / above
    best = 0
    for b in range(1, wide - 1):
        if scores[b] > scores[best]:
            best = b
    return scores[best], best - 1


@njit(cache=True, nogil=True, plain=True)
def _send(bins, rows, last, node, counts):  # type: ignore[no-untyped-def]
    """Move documents to the children of their nodes: bins up to ``last`` go left; count both sides of each node."""
    for k in range(len(rows)):
        right = 1 if bins[rows[k]] > last else 0
        counts[node[k], right] += 1.0
        node[k] = 2 * node[k] + right


@njit(cache=True, nogil=True, plain=True)
def _descend(bins, last, leaf):  # type: ignore[no-untyped-def]
    for row in range(len(leaf)):
        leaf[row] = 2 * leaf[row] + (1 if bins[row] > last else 0)
