"""Simulated assessors: how many judgments a strategy takes, and a whole study in the shape of the paper's.

An assessor *a* holds of document *d* the opinion u = z_d + ω·e_ad, where z is the document's true relevance and e
differs between assessors but not from one question to the next. Asked for a preference, the assessor compares
u + σ·ε of the two, with new noise ε for each look, and calls it a tie if they are less than δ apart. Asked
for a grade, the assessor holds u + γ·ε + λ_a against fixed cuts; λ_a is how lenient this assessor is. All
of z, e, ε are standard normal, λ_a has standard deviation λ. Times are log-normal around the paper's means.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, pi, sin, sqrt
from random import Random
from statistics import NormalDist, fmean
from typing import Any

from gradrank.errors import DataError
from gradrank.labeling.judgments import Verdict
from gradrank.labeling.records import Outcome, Record, Tool
from gradrank.labeling.strategies import Pair, Strategy, strategy

_VALUES = {Verdict.FIRST: 1, Verdict.TIE: 0, Verdict.SECOND: -1}
TRUSTED_TAU = 0.64
"""Kendall's τ of the prior that ``insertion`` is simulated with unless told otherwise: a ranker worth trusting."""


# ---------------------------------------------------------------------- judgments needed
@dataclass(frozen=True)
class Counts:
    """What simulated runs of a strategy took and found."""

    strategy: str
    n: int
    k: int
    judgments: tuple[int, ...]
    exact: tuple[bool, ...]
    """Whether each run found the true top k with its tie groups."""
    overlap: tuple[float, ...]
    """Share of the true top k found by each run."""
    prior_tau: float | None

    def to_dict(self) -> dict[str, Any]:
        """Means and extremes, ready for JSON."""
        ordered = sorted(self.judgments)
        return {
            "strategy": self.strategy,
            "n": self.n,
            "k": self.k,
            "runs": len(self.judgments),
            "prior_tau": self.prior_tau,
            "mean_judgments": fmean(self.judgments),
            "min_judgments": ordered[0],
            "p95_judgments": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
            "max_judgments": ordered[-1],
            "exact_top_k": fmean(self.exact),
            "overlap_at_k": fmean(self.overlap),
        }


def simulate_counts(
    name: str,
    *,
    n: int = 50,
    k: int = 10,
    runs: int = 200,
    seed: int = 0,
    levels: int | None = None,
    noise: float = 0.0,
    prior_tau: float | None = None,
) -> Counts:
    """Count the judgments that a strategy takes when simulated assessors find the top k of n documents.

    Parameters
    ----------
    name
        of the strategy
    n, k
        number of documents, and how many of the best are wanted in order
    runs
        number of simulated queries
    seed
        of all randomness
    levels
        number of grades, drawn evenly, documents of the same grade being tied; a strict order without
    noise
        scale s of errors: an answer is wrong with probability 1 / (1 + exp(distance / s)), the distance being counted
        in ranks (or levels)
    prior_tau
        Kendall's τ between the true order and the one in which documents come to a strategy that uses a prior; 0.64
        unless given

    Examples
    --------
    >>> counts = simulate_counts("tournament", n=8, k=1, runs=5)
    >>> counts.judgments, counts.exact
    ((7, 7, 7, 7, 7), (True, True, True, True, True))
    """
    chosen = strategy(name)
    _at_least_one(n=n, k=k, runs=runs)
    if levels is not None:
        _at_least_one(levels=levels)
    if noise < 0:
        raise DataError(f"noise is {noise}, expected 0 or more")
    if prior_tau is not None and not 0 <= prior_tau <= 1:
        raise DataError(f"the prior's tau is {prior_tau}, expected 0 to 1")
    if chosen.tool is Tool.GRADES:
        raise DataError(f"strategy {name!r} takes n judgments always; there is nothing to simulate")
    tau = (TRUSTED_TAU if prior_tau is None else prior_tau) if chosen.uses_prior else None
    documents = [f"d{index}" for index in range(n)]
    judgments, exact, overlap = [], [], []
    for run in range(runs):
        random = Random(f"counts {seed} {run}")
        drawn = range(n) if levels is None else [random.randrange(levels) for _ in documents]
        level = dict(zip(documents, drawn, strict=True))
        prior = None if tau is None else _noisy_order(level, tau, random)
        race = chosen.race(documents, k, _seed(random), prior)
        asked = 0
        while (request := next(race.requests(), None)) is not None:
            first, second = request.documents
            difference = level[first] - level[second]
            if difference and noise and random.random() < 1 / (1 + exp(min(700.0, abs(difference) / noise))):
                difference = -difference
            race.answer(request, (difference > 0) - (difference < 0))
            asked += 1
        judgments.append(asked)
        found = [level[document] for group in race.top() for document in group]
        best = sorted(level.values(), reverse=True)
        exact.append(_is_true_top(race.top(), level, k))
        cut = best[min(k, n) - 1]
        overlap.append(sum(value >= cut for value in found[:k]) / min(k, n))
    return Counts(name, n, k, tuple(judgments), tuple(exact), tuple(overlap), tau)


def _is_true_top(top: tuple[tuple[str, ...], ...], level: dict[str, int], k: int) -> bool:
    """Whether the groups are the true classes in order; the last may lack documents beyond k."""
    classes: dict[int, set[str]] = {}
    for document in sorted(level, key=lambda document: -level[document]):
        classes.setdefault(level[document], set()).add(document)
    true = list(classes.values())[: len(top)]
    found = [set(group) for group in top]
    return (
        found[:-1] == true[:-1]
        and found[-1] <= true[-1]
        and sum(map(len, found[:-1])) < k
        and sum(map(len, found)) >= min(k, len(level))
    )


def _noisy_order(level: dict[str, int], tau: float, random: Random) -> list[str]:
    """Documents best first, as a ranker sees them whose order has the τ given, on average.

    Noise of variance v on scores of variance 1 leaves a correlation ρ = 1/√(1 + v), and for normal scores
    τ = (2/π) arcsin ρ; ranks are even rather than normal, which changes little.
    """
    n = len(level)
    order = sorted(level, key=lambda document: (-level[document], random.random()))
    if tau == 1:
        return order
    correlation = sin(pi / 2 * tau)
    normal = NormalDist()
    scores = {
        document: correlation * normal.inv_cdf(1 - (place + 0.5) / n) + sqrt(1 - correlation**2) * random.gauss(0, 1)
        for place, document in enumerate(order)
    }
    return sorted(scores, key=lambda document: -scores[document])


# ---------------------------------------------------------------------- a study
@dataclass(frozen=True)
class AssessorModel:
    """How simulated assessors differ, slip and take their time; see the module for the symbols."""

    opinion: float
    """ω: how far assessors' opinions differ."""
    slip: float
    """σ: noise of one look at a document beside another."""
    tie: float
    """δ: documents closer than this look equally good."""
    grading: float
    """γ: noise of one look at a document alone."""
    leniency: float
    """λ: how far assessors' scales differ."""
    cuts: tuple[float, float, float, float]
    """Opinions at which the next better grade begins."""
    pair_seconds: float = 5.51
    grade_seconds: float = 13.87
    """Mean times of a judgment (Niu et al. 2012, table 1)."""
    spread: float = 0.6
    """Standard deviation of the logarithm of times."""
    left: float = 0.0
    """Advantage of the document on the left, in units of relevance."""


PAPER_ASSESSORS = AssessorModel(
    opinion=0.48, slip=0.12, tie=0.08, grading=0.52, leniency=0.48, cuts=(-0.2, 0.5, 1.05, 1.6)
)
"""Fitted by hand to tables 1 to 3 of the paper. Over 20 studies with seeds that were not used to fit it: 143.5
judgments per query by `heap` (paper 142.76), agreement 75.0 ± 1.2 % and 55.6 ± 2.1 % (74.5, 54.7), without ties
89.7 ± 0.7 % and 82.6 ± 0.8 % (89.7, 83.1); ± is the standard deviation of one study."""


@dataclass(frozen=True)
class Study:
    """Records and outcomes of a simulated study, as the reports read them."""

    records: tuple[Record, ...]
    outcomes: tuple[Outcome, ...]


def simulate_study(
    *,
    queries: int = 50,
    n: int = 50,
    k: int = 10,
    assessors: int = 5,
    overlap: int = 2,
    name: str = "heap",
    model: AssessorModel = PAPER_ASSESSORS,
    seed: int = 0,
    truths: Mapping[str, Sequence[float]] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Study:
    """Simulate a study like the paper's: each query is judged by several assessors with each of the two tools.

    Queries are dealt in turn: query q goes to the assessors q, q+1, … with preferences and to the next ones with
    grades, so that nobody sees a query with both tools and all use both equally often.

    Parameters
    ----------
    queries, n, k
        number of queries, documents per query, and documents wanted in order
    assessors
        number of assessors
    overlap
        assessors per query and tool
    name
        of the strategy for preferences
    model
        how assessors differ and err
    seed
        of all randomness
    truths
        true relevance of the documents of each query, in the place of ``queries`` × ``n`` that are drawn; the model
        counts in their deviations
    progress
        called with the number of queries done

    Examples
    --------
    >>> study = simulate_study(queries=2, n=6, k=2, seed=1)
    >>> sorted({(outcome.query, outcome.tool.value, outcome.assessor) for outcome in study.outcomes})[:3]
    [('q01', 'T1', 'U1'), ('q01', 'T1', 'U2'), ('q01', 'T2', 'U3')]
    """
    _at_least_one(queries=queries if truths is None else len(truths), n=n, k=k, overlap=overlap)
    if assessors < 2 * overlap:
        raise DataError(
            f"there are {assessors} assessors, expected {2 * overlap} or more: "
            f"{overlap} for each query with each of two tools"
        )
    tools = [(strategy(name), Tool.PREFERENCES), (strategy("grades"), Tool.GRADES)]
    if tools[0][0].tool is not Tool.PREFERENCES:
        raise DataError(f"strategy is {name!r}, expected one that asks for preferences")
    random = Random(f"study {seed}")
    lenient = [random.gauss(0, model.leniency) for _ in range(assessors)]
    width = max(2, len(str(queries)))
    names = [f"q{query + 1:0{width}}" for query in range(queries)] if truths is None else list(truths)
    records: list[Record] = []
    outcomes: list[Outcome] = []
    for query, named in enumerate(names):
        count = n if truths is None else len(truths[named])
        documents = [f"d{index + 1:0{max(2, len(str(count)))}}" for index in range(count)]
        known = (random.gauss(0, 1) for _ in documents) if truths is None else truths[named]
        truth = dict(zip(documents, known, strict=True))
        seat = query
        for chosen, tool in tools:
            for _ in range(overlap):
                who = seat % assessors
                seat += 1
                mind = _Mind(model, truth, lenient[who], random)
                session = _session(chosen, documents, k, mind, random)
                key = (f"U{who + 1}", named, tool)
                records += [Record(*key, *event) for event in session[0]]
                outcomes.append(Outcome(*key, chosen.name, k, tuple(documents), *session[1]))
        if progress is not None:
            progress(query + 1)
    return Study(tuple(records), tuple(outcomes))


class _Mind:
    """One assessor's opinions on the documents of one query."""

    def __init__(self, model: AssessorModel, truth: dict[str, float], lenient: float, random: Random) -> None:
        self.model, self._random, self._lenient = model, random, lenient
        self._opinion = {document: value + random.gauss(0, model.opinion) for document, value in truth.items()}

    def prefer(self, pair: Pair, first_left: bool) -> Verdict:
        model = self.model
        seen = [self._opinion[document] + self._random.gauss(0, model.slip) for document in pair.documents]
        difference = seen[0] - seen[1] + (model.left if first_left else -model.left)
        if abs(difference) < model.tie:
            return Verdict.TIE
        return Verdict.FIRST if difference > 0 else Verdict.SECOND

    def grade(self, document: str) -> int:
        seen = self._opinion[document] + self._random.gauss(0, self.model.grading) + self._lenient
        return bisect(self.model.cuts, seen)

    def seconds(self, mean: float) -> float:
        spread = self.model.spread
        return round(exp(self._random.gauss(log(mean) - spread**2 / 2, spread)), 2)


def _session(
    chosen: Strategy, documents: list[str], k: int, mind: _Mind, random: Random
) -> tuple[list[Any], list[Any]]:
    """Fields of the records and of the outcome of one assessor on one query."""
    race = chosen.race(documents, k, _seed(random))
    events: list[Any] = []
    bad: list[str] = []
    while (request := next(race.requests(), None)) is not None:
        if isinstance(request, Pair):
            first_left = random.random() < 0.5
            verdict = mind.prefer(request, first_left)
            race.answer(request, _VALUES[verdict])
            seconds = mind.seconds(mind.model.pair_seconds)
            events.append((verdict, request.first, request.second, None, seconds, first_left))
        else:
            grade = mind.grade(request.document)
            race.answer(request, grade)
            bad += [request.document] if grade == 0 else []
            events.append((Verdict.GRADE, request.document, None, grade, mind.seconds(mind.model.grade_seconds), None))
    return events, [race.top(), tuple(bad), race.grades()]


def _seed(random: Random) -> int:
    return int(random.random() * 2**53)


def _at_least_one(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise DataError(f"{name} is {value}, expected 1 or more")
