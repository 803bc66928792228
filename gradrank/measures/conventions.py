"""Conventions: what each tool silently assumes, spelt out, so that its numbers can be reproduced.

A convention gives every parameter of a measure that the user did not give. ``gradrank`` is our own;
the others are named after the tools whose numbers they reproduce. Sources: the tools' code and
behavior (each preset is tested against its tool).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np

from gradrank.errors import MeasureError

# LightGBM counts a document as relevant if its label is above one half.
_ABOVE_HALF = float(np.nextafter(np.float32(0.5), np.float32(1.0)))


@dataclass(frozen=True)
class Convention:
    """Defaults for the parameters of measures, under the name of the tool that has them.

    >>> CONVENTIONS["trec_eval"].value("NDCG", "gain")
    'linear'
    """

    name: str
    summary: str
    defaults: Mapping[str, Any]
    """Parameter values that hold for every measure."""
    measures: tuple[str, ...] | None = None
    """Measures the tool computes; None = all."""
    exceptions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Parameter values of single measures."""

    def defines(self, measure: str) -> bool:
        """Whether the tool computes this measure."""
        return self.measures is None or measure in self.measures

    def value(self, measure: str, parameter: str, default: Any = None) -> Any:
        """The value that this convention gives to a parameter of a measure; the default if no convention knows it."""
        own = self.exceptions.get(measure, {})
        if parameter in own:
            return own[parameter]
        if parameter in self.defaults:
            return self.defaults[parameter]
        return _OWN.exceptions.get(measure, {}).get(parameter, _OWN.defaults.get(parameter, default))


_OWN = Convention(
    "gradrank",
    "our own: exact expectation over tied scores, queries without a relevant document count 0",
    {
        "gain": "exp2",
        "discount": "log2",
        "empty": 0.0,
        "short": "pad",
        "ties": "average",
        "precision": "double",
        "unjudged": "nonrelevant",
        "rel": 1.0,
        "denominator": "relevant",
        "per": "cutoff",
        "top": 4.0,
        "target": "relevant",
        "variant": "pairs",
        "p": 0.8,
    },
    exceptions={
        # A query without a pair of different labels has neither a rank correlation nor preferences.
        "KendallTau": {"empty": "skip"},
        **{name: {"empty": "skip"} for name in ("PPref", "RPref", "WPref", "NWPref")},
        # Position labels run up to k, which differs from query to query.
        "KappaERR": {"top": "query"},
    },
)

_PERL_SCRIPTS = {
    "gain": "exp2",
    "discount": "letor",
    "empty": 0.0,
    "short": "zero",
    "ties": "file",
    "denominator": "relevant",
    "per": "cutoff",
}

CONVENTIONS: dict[str, Convention] = {
    convention.name: convention
    for convention in (
        _OWN,
        Convention(
            "letor4",
            "the LETOR 3.0/4.0 evaluation script: ranks 1 and 2 undiscounted, lists shorter than k score 0 at k",
            {**_PERL_SCRIPTS, "rel": 1.0},
            ("NDCG", "MeanNDCG", "MAP", "P"),
        ),
        Convention(
            "mslr",
            "the MSLR-WEB10K/30K script: as letor4, but relevant means label 2 or more",
            {**_PERL_SCRIPTS, "rel": 2.0},
            ("NDCG", "MeanNDCG", "MAP", "P"),
        ),
        Convention(
            "trec_eval",
            "trec_eval and pytrec_eval: linear gain, single-precision scores, ties by descending document id",
            {"gain": "linear", "ties": "docid", "precision": "single"},
            ("NDCG", "MAP", "MRR", "P", "Recall", "Bpref"),
        ),
        Convention(
            "gdeval",
            "TREC's gdeval: queries without a relevant document are left out, grades up to 4",
            {"discount": "ln", "empty": "skip", "ties": "docid", "top": 4.0},
            ("NDCG", "ERR"),
        ),
        Convention(
            "lightgbm",
            "LightGBM's ndcg and map: a query without a relevant document counts 1",
            {"empty": 1.0, "ties": "file", "rel": _ABOVE_HALF, "denominator": "cutoff"},
            ("NDCG", "MAP"),
        ),
        Convention(
            "xgboost",
            "XGBoost's ndcg, map and pre: a query without a relevant document counts 1, single-precision scores",
            {"empty": 1.0, "ties": "file", "precision": "single", "denominator": "cutoff", "per": "list"},
            ("NDCG", "MAP", "P"),
            {"P": {"empty": 0.0}},
        ),
        Convention(
            "ranklib",
            "RankLib: ties in file order, P@k over min(k, list), ERR with grades up to 4",
            {"ties": "file", "per": "list"},
            ("NDCG", "DCG", "MAP", "MRR", "P", "ERR"),
        ),
        Convention(
            "sklearn",
            "scikit-learn's dcg_score and ndcg_score: linear gain, averaged over ties",
            {"gain": "linear", "ties": "average"},
            ("NDCG", "DCG"),
        ),
    )
}


def convention(name: str) -> Convention:
    """Look a convention up by name.

    >>> convention("letor4").defines("ERR")
    False
    """
    try:
        return CONVENTIONS[name]
    except KeyError:
        close = get_close_matches(name, CONVENTIONS, n=1)
        hint = f"did you mean {close[0]}? The" if close else "the"
        known = ", ".join(CONVENTIONS)
        raise MeasureError(f"there is no convention {name!r}; {hint} conventions are {known}") from None
