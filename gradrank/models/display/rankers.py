"""A ranker in a notebook: what it is, how it was trained, and its learning curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradrank.models.display.curves import curve_svg, learning_curves
from gradrank.models.display.markup import Html, markup, strong, table_html

if TYPE_CHECKING:
    from gradrank.models.ranker import Ranker

_TOP_FEATURES = 5
_MOST_CURVES = 3


def ranker_html(ranker: Ranker) -> Html:
    """Facts and learning curves of a ranker.

    >>> from gradrank.models.feature import FeatureRanker
    >>> "FeatureRanker" in ranker_html(FeatureRanker("bm25"))
    True
    """
    curves = list(learning_curves(ranker.training))[:_MOST_CURVES]
    drawn = "".join(
        f'<figure style="margin:.3em 0"><figcaption>{markup(measure)} while training</figcaption>'
        f"{curve_svg(ranker.training, measure)}</figure>"
        for measure in curves
    )
    facts = facts_html(type(ranker).__name__, ranker_facts(ranker))
    return Html(f'<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start">{facts}{drawn}</div>')


def facts_html(title: str, facts: Sequence[tuple[str, str]]) -> Html:
    """Names and values under a title."""
    return table_html(["", ""], facts, numeric=[False, False], caption=strong(title))


def ranker_facts(ranker: Ranker) -> list[tuple[str, str]]:
    """What a reader wants to know of a ranker, in words.

    >>> from gradrank.models.linear import LinearRanker
    >>> ranker_facts(LinearRanker([1.0, 3.0, 0.0]))
    [('features', '3, of which 2 are used'), ('most important', 'f2 75 %, f1 25 %')]
    """
    used = len(ranker.used_features())
    features = f"{ranker.n_features:,}" + ("" if used == ranker.n_features else f", of which {used:,} are used")
    facts = [(name, f"{value:,}" if isinstance(value, int) else value) for name, value in ranker.shape().items()]
    facts.append(("features", features))
    shares = ranker.importances()
    if shares is not None and shares.any():
        top = [int(place) for place in np.argsort(-shares, kind="stable")[:_TOP_FEATURES] if shares[place] > 0]
        told = (f"{ranker.feature_names[place]} {100 * shares[place]:.0f} %" for place in top)
        facts.append(("most important", ", ".join(told)))
    return facts + training_facts(ranker.training)


def training_facts(training: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Who trained, for what, how far, how long; what is not told is left out.

    >>> training_facts({"learner": "LambdaMART", "measure": "NDCG@10", "best": 30, "grown": 40})
    [('learner', 'LambdaMART'), ('measure', 'NDCG@10'), ('best step', '30 of 40')]
    """
    facts = [(key, str(training[key])) for key in ("source", "learner", "objective", "measure") if training.get(key)]
    if isinstance(training.get("best"), int) and isinstance(training.get("grown"), int):
        cut = ", interrupted" if training.get("interrupted") else ""
        facts.append(("best step", f"{training['best']:,} of {training['grown']:,}{cut}"))
    if isinstance(training.get("seconds"), int | float):
        facts.append(("seconds", f"{training['seconds']:,.1f}"))
    return facts


def trained_by(training: Mapping[str, Any]) -> str:
    """A few words on the training for a line of text, empty if nothing is known.

    >>> trained_by({"learner": "LambdaMART", "measure": "NDCG@10", "best": 30, "grown": 40})
    '; LambdaMART for NDCG@10, step 30 of 40'
    """
    words = str(training.get("learner") or training.get("source") or "")
    if words and training.get("measure"):
        words += f" for {training['measure']}"
    if words and isinstance(training.get("best"), int) and isinstance(training.get("grown"), int):
        words += f", step {training['best']:,} of {training['grown']:,}"
    return f"; {words}" if words else ""
