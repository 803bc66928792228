"""Exact Shapley values between two documents in a sum of trees: a feature left out has the other document's value.

The game of documents a and b is v(S) = score of the document that has a's values for the features in S and b's for
the others, so that v(all) − v(none) = score(a) − score(b). A leaf is reached by such a mixture if and only if the
features P of its path that only a's values pass are in S, and the features N that only b's values pass are not. Its
value w gives

    each feature of P    + w · (|P| − 1)! |N|! / (|P| + |N|)!
    each feature of N    − w · |P|! (|N| − 1)! / (|P| + |N|)!

(Lundberg et al. 2020, "From local explanations to global understanding with explainable AI for trees", with one
background document.) Features in which the documents do not differ get exactly 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gradrank.models.features import Matrix
from gradrank.models.trees.tree import TreeArrays, goes_left, read_only
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

# A pair costs about as much as so many documents to score, by which the work is divided among threads.
_DOCUMENTS_PER_PAIR = 64


def pair_shares(
    arrays: TreeArrays,
    X: Matrix,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Shares of the features in score(first) − score(second), pairs × features.

    Parameters
    ----------
    arrays
        The trees.
    X
        Documents × features.
    first, second
        Numbers of the documents of each pair.
    n_jobs
        Threads to use; all cores by default.
    """
    n_features = X.shape[1]
    out = np.zeros((len(first), n_features))
    longest = int(np.diff(arrays.node_start).max(initial=0)) + 1
    log_factorial = gammaln(np.arange(min(longest, n_features) + 2) + 1.0)
    matrix = read_only(np.ascontiguousarray(X))
    edges = _DOCUMENTS_PER_PAIR * np.arange(len(first) + 1)

    def work(start: int, end: int) -> None:
        _pair_shares(
            arrays.node_start, arrays.split_feature, arrays.threshold, arrays.decision, arrays.children,
            arrays.leaf_value, arrays.cat_start, arrays.cat_words, matrix, first[start:end], second[start:end],
            log_factorial, np.zeros(n_features, dtype=np.uint8), np.empty((4, longest), dtype=np.int64), out[start:end],
        )  # fmt: skip

    for_query_blocks(work, edges, n_jobs)
    return out


@njit(cache=True, nogil=True)
def _pair_shares(
    node_start: Any,
    split_feature: Any,
    threshold: Any,
    decision: Any,
    children: Any,
    leaf_value: Any,
    cat_start: Any,
    cat_words: Any,
    X: Any,
    first: Any,
    second: Any,
    log_factorial: Any,
    taken_from: Any,
    scratch: Any,
    out: Any,
) -> None:
    # taken_from: 0 = the path has not yet asked the feature where it matters, 1 = it has a's value, 2 = b's.
    chosen, waiting_node, waiting_length, waiting_feature = scratch[0], scratch[1], scratch[2], scratch[3]
    for pair in range(len(first)):
        a, b = X[first[pair]], X[second[pair]]
        for tree in range(len(node_start) - 1):
            begin = node_start[tree]
            if node_start[tree + 1] == begin:
                continue
            node, n_chosen, n_waiting, from_a = 0, 0, 0, 0
            while True:
                while node >= 0:
                    k = begin + node
                    feature = split_feature[k]
                    left_a = goes_left(a[feature], threshold[k], decision[k], cat_start, cat_words)
                    left_b = goes_left(b[feature], threshold[k], decision[k], cat_start, cat_words)
                    source = taken_from[feature]
                    if source == 0 and left_a != left_b:
                        # Now with a's value; the way with b's waits.
                        waiting_node[n_waiting] = children[k, 0 if left_b else 1]
                        waiting_length[n_waiting] = n_chosen
                        waiting_feature[n_waiting] = feature
                        n_waiting += 1
                        taken_from[feature] = 1
                        chosen[n_chosen] = feature
                        n_chosen += 1
                        from_a += 1
                        node = children[k, 0 if left_a else 1]
                    else:
                        node = children[k, 0 if (left_b if source == 2 else left_a) else 1]
                from_b = n_chosen - from_a
                if n_chosen:
                    value = leaf_value[begin + tree + ~node]
                    total = log_factorial[n_chosen]
                    gain = (
                        0.0
                        if from_a == 0
                        else value * np.exp(log_factorial[from_a - 1] + log_factorial[from_b] - total)
                    )
                    loss = (
                        0.0
                        if from_b == 0
                        else value * np.exp(log_factorial[from_a] + log_factorial[from_b - 1] - total)
                    )
                    for place in range(n_chosen):
                        feature = chosen[place]
                        out[pair, feature] += gain if taken_from[feature] == 1 else -loss
                if n_waiting == 0:
                    break
                n_waiting -= 1
                node = waiting_node[n_waiting]
                while n_chosen > waiting_length[n_waiting]:
                    n_chosen -= 1
                    feature = chosen[n_chosen]
                    from_a -= 1 if taken_from[feature] == 1 else 0
                    taken_from[feature] = 0
                feature = waiting_feature[n_waiting]
                taken_from[feature] = 2
                chosen[n_chosen] = feature
                n_chosen += 1
            for place in range(n_chosen):
                taken_from[chosen[place]] = 0
