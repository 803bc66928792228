"""What other tools pass to ``fit``, and where it belongs here."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Concatenate, ParamSpec, TypeVar

from gradrank.learners.base.parameters import Declared, Parameter, elsewhere
from gradrank.runtime.suggestions import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
L = TypeVar("L", bound=Declared)

_INSTEAD = {
    "group": "qid= takes one query id per row; np.repeat(range(len(group)), group) makes them of sizes",
    "eval_group": "eval_qid= takes the query ids of each set of eval_set, one per row",
    "eval_at": "the measure has its cut-off: measure='NDCG@10'",
    "eval_sample_weight": "a set of eval_set as ranking data may hold weights",
    "eval_names": "valid= takes validation sets by name",
    "validation_data": "valid= takes ranking data or (X, y, qid)",
    **dict.fromkeys(("query_id", "groups", "group_id", "query", "query_ids"), "qid= takes one query id per row"),
    "eval_group_id": "eval_qid= takes the query ids of each set of eval_set, one per row",
    "weight": "sample_weight= takes the weights",
    "group_weight": "sample_weight= takes the weights of queries",
    **dict.fromkeys(("sample_weight_eval_set", "eval_weight"), "a set of eval_set as ranking data may hold weights"),
    **dict.fromkeys(
        ("init_score", "base_margin", "baseline", "eval_init_score", "base_margin_eval_set"),
        "scores to begin with are those of a ranker, LambdaMART(base=…), which then is part of the model",
    ),
    **dict.fromkeys(("init_model", "xgb_model"), "a model to go on from is a parameter, LambdaMART(base=…)"),
    **dict.fromkeys(
        ("feature_name", "feature_names"),
        "names of features are those of a frame, or RankingData.from_arrays(…, feature_names=…)",
    ),
    "pairs": "documents of a query are compared by their labels",
    **dict.fromkeys(("plot", "logging_level", "log_cout", "log_cerr"), "callbacks are a parameter, callbacks=[…]"),
}


def known_to_fit(fit: Callable[Concatenate[L, P], R]) -> Callable[Concatenate[L, P], R]:
    """Let ``fit`` say where an argument belongs that it does not have.

    >>> class Net(Declared):
    ...     @known_to_fit
    ...     def fit(self, X, qid=None): ...
    >>> Net().fit([[1.0]], group=[1])
    Traceback (most recent call last):
    TypeError: Net.fit has no argument 'group': qid= takes one query id per row; np.repeat(range(len(group)), group) \
makes them of sizes
    """
    known = list(inspect.signature(fit).parameters)

    @functools.wraps(fit)
    def checked(self: L, /, *args: P.args, **keywords: P.kwargs) -> R:
        for word in keywords:
            if word not in known:
                name = type(self).__name__
                raise TypeError(f"{name}.fit has no argument {word!r}{_hint(name, word, self.declared, known)}")
        return fit(self, *args, **keywords)

    return checked


def _hint(learner: str, word: str, declared: Mapping[str, Parameter], known: list[str]) -> str:
    if word in _INSTEAD:
        return f": {_INSTEAD[word]}"
    own = word if word in declared else elsewhere(word)
    return f": it is a parameter, {learner}({own}=…)" if own in declared else did_you_mean(word, known)
