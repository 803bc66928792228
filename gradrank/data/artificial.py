"""Artificial data whose truth is known: grades from random cubic polynomials of the features.

Wu et al. (2009, §5.1) and Donmez et al. (2009, §6) compare learners on data made "from random cubic
polynomials": no noise in features or labels, so what is left to see is the learner. Here

    f(x) = Σ_i a_i x_i + Σ b x_i x_j + Σ c x_i x_j x_k,    x, a, b, c uniform in [−1, 1],

with all linear terms, 1.6 quadratic and 3.2 cubic monomials per feature (80 and 160 for 50 features), the
features of a monomial distinct and drawn at random; the grade of a document is the number of cuts
below f(x). The cuts sit at fixed quantiles of f, so grades are as unevenly spread as those of web
pages: 60 % bad, 25 % fair, 10 % good, 4 % excellent, 1 % perfect. The quantiles are estimated from a
sample of their own, so every split of the same seed shares truth *and* cuts.

On top of that come what the other experiments need: label noise, a second set of graders, a shifted
second domain, and click labels.

**Clicks.** Each query is served by an existing ranker (f plus noise, drawn anew for each of four
versions of the ranker), which shows its first ten documents to simulated users. Users read from the
top and go on after each document with a fixed probability (position bias); they click what they read
with probability σ(bias + relevance + appeal), and after a click the grade decides how likely they are
satisfied and stop (Chapelle & Zhang 2009, dynamic Bayesian network). Appeal — a snippet that promises
much — is drawn independently of relevance: a random quadratic polynomial of the features, so that it
can be learnt in part, plus noise that cannot. The label is the last-click rate (Svore et al. 2011, §6):
last clicks per session in which the document was shown, zero for documents no user ever saw.

Everything is drawn from streams keyed by seed, domain, part and block of queries, so a seed gives the
same data for any number of threads, and the first queries of a longer data set are those of a shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradrank.data.clicks.agreement import agreeing_pairs
from gradrank.data.ranking_data import PRIMARY_LABEL, RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError
from gradrank.runtime.kernels import njit
from gradrank.runtime.threads import for_query_blocks

WEB_CUTS = (0.60, 0.85, 0.95, 0.99)
"""Quantiles at which five grades are cut, about the spread of web judgments."""

# Monomials per feature. Their number grows with the features, so that the linear terms explain about half
# of the relevance whether there are 50 features or 300. Numbers and cuts are calibrated to the level of
# LambdaMART in Wu et al. (2009), table 1: NDCG@10, @3, @1 of 87.9, 81.7, 79.6. LightGBM's lambdarank (1,000 trees
# of 10 leaves, rate 0.1, 10,000 queries) has 86.6, 82.3, 81.2 for seed 0 and 85.7, 80.9, 79.7 for seed 1. With 2
# and 2 monomials per feature and cuts at 45, 75, 90 and 97 % it has 91.7, 89.2, 89.8: more cubic terms lower the
# level, and rarer top grades lower @1 more than @10.
_QUADRATIC = 1.6
_CUBIC = 3.2
_FINITE = float(np.finfo(np.float64).max)
_SAMPLE = 100_000  # documents from which the quantiles are estimated
_BLOCK = 256  # queries that share one random stream

# The simulated users. The numbers give 1.1 documents clicked a session and a click-through rate falling from
# 0.31 at the first place to 0.03 at the tenth; a sample of the Yandex log has 1.2, 0.26 and 0.05.
_RANKER_VERSIONS = 4
_SESSIONS = 40  # of each version
_SHOWN = 10
_RANKER_NOISE = 1.0  # in standard deviations of f
_CONTINUE = 0.92
_CLICK_BIAS = -3.2
_CLICK_RELEVANCE = 3.2  # top grade against grade 0
_CLICK_APPEAL = 1.2  # one standard deviation of appeal
_APPEAL_PREDICTABLE = 0.7  # share of the variance of appeal that features explain
_SATISFIED_LOW = 0.1
_SATISFIED_HIGH = 0.6

# Names of the random streams.
_TRUTH, _DOMAIN, _CUT_SAMPLE, _SIZES, _FEATURES, _NOISE, _SECOND, _APPEAL_TRUTH, _APPEAL, _CLICKS = range(10)
_AGREEMENT_SAMPLE = 10

_AGREEMENT_QUERIES = 400  # from which the users are found whose clicks agree with the grades as wanted


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A sparse cubic polynomial: all linear terms, and some monomials of degree two and three."""

    linear: NDArray[np.float64]
    pairs: NDArray[np.int64]
    pair_weights: NDArray[np.float64]
    triples: NDArray[np.int64]
    triple_weights: NDArray[np.float64]

    def __call__(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Values at the rows of ``X``."""
        values = np.empty(len(X))
        _evaluate(X, self.linear, self.pairs, self.pair_weights, self.triples, self.triple_weights, values)
        return values

    def perturbed(self, share: float, rng: np.random.Generator) -> Polynomial:
        """A polynomial in which this share of the terms of each degree is drawn anew.

        The two then correlate by about 1 − share. For one stream, a larger share redraws the
        same terms and more.
        """
        n_features = len(self.linear)
        other = _random_polynomial(n_features, len(self.pairs), len(self.triples), rng)
        linear = _some(n_features, share, rng)
        pairs = _some(len(self.pairs), share, rng)
        triples = _some(len(self.triples), share, rng)
        return Polynomial(
            np.where(linear, other.linear, self.linear),
            np.where(pairs[:, None], other.pairs, self.pairs),
            np.where(pairs, other.pair_weights, self.pair_weights),
            np.where(triples[:, None], other.triples, self.triples),
            np.where(triples, other.triple_weights, self.triple_weights),
        )


def _some(count: int, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    chosen = np.zeros(count, dtype=bool)
    chosen[rng.permutation(count)[: round(share * count)]] = True
    return chosen


def _random_polynomial(n_features: int, n_pairs: int, n_triples: int, rng: np.random.Generator) -> Polynomial:
    def monomials(count: int, degree: int) -> NDArray[np.int64]:
        # The first columns of a random permutation are distinct features.
        return np.argsort(rng.random((count, n_features)), axis=1)[:, :degree].astype(np.int64)

    return Polynomial(
        linear=rng.uniform(-1, 1, n_features),
        pairs=monomials(n_pairs, 2),
        pair_weights=rng.uniform(-1, 1, n_pairs),
        triples=monomials(n_triples, 3),
        triple_weights=rng.uniform(-1, 1, n_triples),
    )


@njit(cache=True, nogil=True)
def _evaluate(
    X: NDArray[np.float32],
    linear: NDArray[np.float64],
    pairs: NDArray[np.int64],
    pair_weights: NDArray[np.float64],
    triples: NDArray[np.int64],
    triple_weights: NDArray[np.float64],
    values: NDArray[np.float64],
) -> None:
    for row in range(len(X)):
        x = X[row]
        total = 0.0
        for i in range(len(linear)):
            total += linear[i] * x[i]
        for t in range(len(pairs)):
            total += pair_weights[t] * x[pairs[t, 0]] * x[pairs[t, 1]]
        for t in range(len(triples)):
            total += triple_weights[t] * x[triples[t, 0]] * x[triples[t, 1]] * x[triples[t, 2]]
        values[row] = total


@dataclass(frozen=True, eq=False)
class Truth:
    """What the labels of a seed and domain are made from; shared by all its splits."""

    relevance: Polynomial
    mean: float
    deviation: float
    """Mean and standard deviation of the relevance polynomial over documents."""
    cuts: NDArray[np.float64]
    """Cuts of the standardized relevance into true grades."""
    noisy_cuts: NDArray[np.float64]
    """The same for relevance with the judges' noise, so that noise leaves the shares of the grades alone."""
    second_cuts: NDArray[np.float64]
    """The same for the second graders."""
    appeal: Polynomial
    appeal_mean: float
    appeal_deviation: float

    def standardized(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Noise-free relevance of documents, mean 0 and variance 1."""
        return (self.relevance(X) - self.mean) / self.deviation


def make_truth(
    n_features: int = 50,
    *,
    random_state: int = 0,
    grades: int | Sequence[float] = 5,
    noise: float = 0.0,
    second_graders: float | None = None,
    domain_shift: float = 0.0,
    domain: int = 1,
) -> Truth:
    """The ground truth behind :func:`make_data` for the same arguments.

    >>> truth = make_truth(n_features=10, random_state=3)
    >>> truth.standardized(np.zeros((1, 10), dtype=np.float32)).shape, len(truth.cuts)
    ((1,), 4)
    """
    for name, number in (("random_state", random_state), ("domain", domain)):
        if number < 0:
            raise DataError(f"{name} is {number}, expected 0 or more")
    _check("domain_shift", domain_shift, 0.0, 1.0)
    _check("noise", noise, 0.0, _FINITE)
    if n_features < 3:
        raise DataError(f"n_features is {n_features}, expected 3 or more (a cubic term needs three features)")
    quantiles = cut_quantiles(grades)
    relevance = _random_polynomial(
        n_features, round(_QUADRATIC * n_features), round(_CUBIC * n_features), _stream(random_state, _TRUTH)
    )
    if domain_shift > 0:
        relevance = relevance.perturbed(domain_shift, _stream(random_state, _DOMAIN, domain))
    # Snippets appeal in the same way everywhere: the appeal does not shift with the domain.
    appeal = _random_polynomial(n_features, 20, 0, _stream(random_state, _APPEAL_TRUTH))
    rng = _stream(random_state, _CUT_SAMPLE)
    X = _features(rng, _SAMPLE, n_features)
    values = relevance(X)
    mean, deviation = float(values.mean()), float(values.std())
    values = (values - mean) / deviation
    judged = values + noise * rng.standard_normal(_SAMPLE)
    second_judged = values + (second_graders or 0.0) * rng.standard_normal(_SAMPLE)
    appeals = appeal(X)
    return Truth(
        relevance=relevance,
        mean=mean,
        deviation=deviation,
        cuts=np.quantile(values, quantiles),
        noisy_cuts=np.quantile(judged, quantiles),
        second_cuts=np.quantile(second_judged, quantiles),
        appeal=appeal,
        appeal_mean=float(appeals.mean()),
        appeal_deviation=float(appeals.std()),
    )


def cut_quantiles(grades: int | Sequence[float]) -> tuple[float, ...]:
    """Quantiles at which a number of grades is cut, or the given ones, checked.

    Five grades are cut at :data:`WEB_CUTS`; for another number the shares above the cuts follow the
    same geometric fall.

    >>> cut_quantiles(5)
    (0.6, 0.85, 0.95, 0.99)
    >>> [round(cut, 2) for cut in cut_quantiles(3)]
    [0.76, 0.98]
    """
    if isinstance(grades, int):
        if not 2 <= grades <= 32:
            raise DataError(f"grades is {grades}, expected 2 to 32")
        if grades == len(WEB_CUTS) + 1:
            return WEB_CUTS
        known = (np.arange(len(WEB_CUTS)) + 0.5) / len(WEB_CUTS)
        wanted = (np.arange(grades - 1) + 0.5) / (grades - 1)
        above = np.log1p(-np.array(WEB_CUTS))
        # Beyond the outer cuts the outer slopes go on, so that many grades keep distinct cuts.
        below_first = above[0] + (wanted - known[0]) * (above[1] - above[0]) / (known[1] - known[0])
        after_last = above[-1] + (wanted - known[-1]) * (above[-1] - above[-2]) / (known[-1] - known[-2])
        logs = np.interp(wanted, known, above)
        logs = np.where(wanted < known[0], below_first, np.where(wanted > known[-1], after_last, logs))
        return tuple((-np.expm1(logs)).tolist())
    cuts = tuple(float(cut) for cut in grades)
    if not cuts or cuts[0] <= 0 or cuts[-1] >= 1 or any(a >= b for a, b in pairwise(cuts)):
        raise DataError(f"grades are cut at quantiles {cuts}, expected rising numbers between 0 and 1")
    return cuts


def make_data(
    n_queries: int = 10_000,
    *,
    n_docs: int | tuple[int, int] = 50,
    n_features: int = 50,
    random_state: int = 0,
    grades: int | Sequence[float] = 5,
    noise: float = 0.0,
    clicks: bool = False,
    click_agreement: float | None = None,
    second_graders: float | None = None,
    domain_shift: float = 0.0,
    domain: int = 1,
    part: int = 0,
    first_qid: int = 1,
    n_jobs: int | None = None,
) -> RankingData:
    """Artificial queries and documents with grades from a random cubic polynomial.

    Parameters
    ----------
    n_queries
        Number of queries.
    n_docs
        Documents per query, or the lowest and the highest number of them.
    n_features
        Number of features.
    random_state
        Seed of all randomness.
    grades
        Number of grades, or the quantiles at which they are cut.
    noise
        Standard deviation of the judges' error, relative to that of the polynomial.
    clicks
        Whether to add the label source ``clicks``: what simulated users click.
    click_agreement
        Share of the pairs that clicks and grades order alike, among those that both order (``pair_agreement``):
        users then look more at relevance, or more at appeal and at the lists of a weaker ranker, so that it comes out
        on a sample of queries. None = the users described above, about 0.9.
    second_graders
        The error of a second set of judges, who give the label source ``second``; None = there are none.
    domain_shift, domain
        With a shift above 0 the data is from domain number ``domain``, in which that share of the polynomial's terms
        differs from the base domain of the same seed.
    part
        Different parts of the same seed are different documents under the same truth.
    first_qid
        Number of the first query.
    n_jobs
        Number of threads; every core if not given.

    Examples
    --------
    >>> data = make_data(20, n_docs=(5, 9), n_features=10, random_state=1, clicks=True)
    >>> data.n_queries, data.n_features, data.label_names, data.qid[0], data.docid[0]
    (20, 10, ('label', 'clicks'), '1', 'q1d1')
    """
    if n_queries < 1:
        raise DataError(f"n_queries is {n_queries}, expected 1 or more")
    low, high = (n_docs, n_docs) if isinstance(n_docs, int) else n_docs
    if not 1 <= low <= high:
        raise DataError(f"n_docs is {n_docs}, expected 1 or more, or a pair (lowest, highest)")
    if second_graders is not None:
        _check("second_graders", second_graders, 0.0, _FINITE)
    truth = make_truth(
        n_features,
        random_state=random_state,
        grades=grades,
        noise=noise,
        second_graders=second_graders,
        domain_shift=domain_shift,
        domain=domain,
    )
    if click_agreement is not None and not clicks:
        raise DataError("click_agreement is given, but no clicks are made: give clicks=True")
    taste = 0.0
    if click_agreement is not None:
        sample = _stream(random_state, _AGREEMENT_SAMPLE)
        taste = _taste(truth, click_agreement, sample, (low, high), n_features, noise)
    key = (domain if domain_shift > 0 else 0, part)
    sizes = _stream(random_state, _SIZES, *key).integers(low, high + 1, n_queries)
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    n = int(indptr[-1])
    X = np.empty((n, n_features), dtype=np.float32)
    columns = [PRIMARY_LABEL, *(["clicks"] if clicks else []), *(["second"] if second_graders is not None else [])]
    labels = {name: np.empty(n, dtype=np.float32) for name in columns}
    block_indptr = np.append(indptr[:-1:_BLOCK], n)

    def work(first_block: int, end_block: int) -> None:
        for block in range(first_block, end_block):
            rows = slice(block_indptr[block], block_indptr[block + 1])
            count = int(rows.stop - rows.start)
            X[rows] = _features(_stream(random_state, _FEATURES, *key, block), count, n_features)
            values = truth.standardized(X[rows])
            labels[PRIMARY_LABEL][rows] = _grades(
                values, truth.noisy_cuts, noise, _stream(random_state, _NOISE, *key, block)
            )
            if second_graders is not None:
                rng = _stream(random_state, _SECOND, *key, block)
                labels["second"][rows] = _grades(values, truth.second_cuts, second_graders, rng)
            if clicks:
                block_sizes = sizes[block * _BLOCK : (block + 1) * _BLOCK]
                streams = (_stream(random_state, _APPEAL, *key, block), _stream(random_state, _CLICKS, *key, block))
                labels["clicks"][rows] = _click_rates(truth, X[rows], values, block_sizes, *streams, taste)

    for_query_blocks(work, block_indptr, n_jobs)
    return RankingData.from_arrays(
        X,
        labels,
        qid=np.repeat(np.arange(first_qid, first_qid + n_queries), sizes),
        docid=_document_names(sizes, first_qid),
    )


def make_splits(n_queries: int = 10_000, *, random_state: int = 0, **options: Any) -> dict[str, RankingData]:
    """Train, validation and test data of n, n/2 and n queries under one ground truth.

    Parameters
    ----------
    n_queries
        Number of training and of test queries; there are half as many for validation.
    random_state
        Seed of all randomness.
    options
        Those of :func:`make_data`.

    Examples
    --------
    >>> splits = make_splits(10, n_docs=5, n_features=5)
    >>> {name: data.n_queries for name, data in splits.items()}
    {'train': 10, 'vali': 5, 'test': 10}
    """
    counts = {"train": n_queries, "vali": max(1, n_queries // 2), "test": n_queries}
    splits: dict[str, RankingData] = {}
    first_qid = 1
    for part, (name, count) in enumerate(counts.items()):
        splits[name] = make_data(count, random_state=random_state, part=part, first_qid=first_qid, **options)
        first_qid += count
    return splits


def _stream(random_state: int, *key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=key))


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        limits = f"of {low:g} or more" if high == _FINITE else f"from {low:g} to {high:g}"
        raise DataError(f"{name} is {value}, expected a number {limits}")


def _features(rng: np.random.Generator, count: int, n_features: int) -> NDArray[np.float32]:
    X = rng.random((count, n_features), dtype=np.float32)
    X *= 2
    X -= 1
    return X


def _grades(
    values: NDArray[np.float64], cuts: NDArray[np.float64], noise: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    if noise > 0:
        values = values + noise * rng.standard_normal(len(values))
    return np.searchsorted(cuts, values).astype(np.int64)


def _document_names(sizes: NDArray[np.int64], first_qid: int) -> Strings:
    return Strings.of(
        f"q{query}d{place}" for query, size in enumerate(sizes.tolist(), first_qid) for place in range(1, size + 1)
    )


def _click_rates(
    truth: Truth,
    X: NDArray[np.float32],
    relevance: NDArray[np.float64],
    sizes: NDArray[np.int64],
    document_rng: np.random.Generator,
    user_rng: np.random.Generator,
    taste: float = 0.0,
) -> NDArray[np.float64]:
    """Last-click rates of the documents of some queries, for users who look more at relevance (−1) or appeal (1)."""
    random = document_rng.standard_normal((len(X), 1 + _RANKER_VERSIONS))
    predictable = (truth.appeal(X) - truth.appeal_mean) / truth.appeal_deviation
    appeal = np.sqrt(_APPEAL_PREDICTABLE) * predictable + np.sqrt(1 - _APPEAL_PREDICTABLE) * random[:, 0]
    grade = np.searchsorted(truth.cuts, relevance) / len(truth.cuts)
    drawn = _CLICK_RELEVANCE * (1 - taste) * grade + _CLICK_APPEAL * (1 + taste) * appeal
    attraction = 1 / (1 + np.exp(-(_CLICK_BIAS + drawn)))
    satisfaction = _SATISFIED_LOW + (_SATISFIED_HIGH - _SATISFIED_LOW) * grade
    # The ranker brings relevant documents to the users' eyes: clicks agree little only if it is a weak one, too.
    served = relevance[:, None] + _RANKER_NOISE * (1 + 3 * max(taste, 0.0)) * random[:, 1:]
    draws = user_rng.random((len(sizes), _RANKER_VERSIONS, _SESSIONS, _SHOWN, 3), dtype=np.float32)
    impressions = np.zeros(len(X))
    last_clicks = np.zeros(len(X))
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    _browse(indptr, served, attraction, satisfaction, _CONTINUE, draws, impressions, last_clicks)
    return last_clicks / np.maximum(impressions, 1)


def _taste(
    truth: Truth,
    agreement: float,
    rng: np.random.Generator,
    n_docs: tuple[int, int],
    n_features: int,
    noise: float,
) -> float:
    """The users whose clicks agree so much with the grades of a sample of queries, the same for all parts of a seed."""
    sizes = rng.integers(n_docs[0], n_docs[1] + 1, _AGREEMENT_QUERIES)
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    X = _features(rng, int(indptr[-1]), n_features)
    values = truth.standardized(X)
    grades = _grades(values, truth.noisy_cuts, noise, rng).astype(np.float64)
    seeds = rng.integers(0, 2**31, 2)

    def agreeing(taste: float) -> float:
        documents, users = (np.random.default_rng(seed) for seed in seeds)
        rates = _click_rates(truth, X, values, sizes, documents, users, taste)
        alike, ordered = agreeing_pairs(indptr, grades, rates)
        return alike / ordered if ordered else float("nan")

    low, high = 1.0, -1.0
    least, most = agreeing(low), agreeing(high)
    if not least <= agreement <= most:
        raise DataError(
            f"click_agreement is {agreement}, expected a number from {least:.2f} to {most:.2f}, which these users reach"
        )
    for _ in range(12):
        middle = 0.5 * (low + high)
        if agreeing(middle) < agreement:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@njit(cache=True, nogil=True)
def _browse(
    indptr: NDArray[np.int64],
    served: NDArray[np.float64],
    attraction: NDArray[np.float64],
    satisfaction: NDArray[np.float64],
    go_on: float,
    draws: NDArray[np.float32],
    impressions: NDArray[np.float64],
    last_clicks: NDArray[np.float64],
) -> None:
    _, versions, sessions, places, _ = draws.shape
    for query in range(len(indptr) - 1):
        start = indptr[query]
        size = indptr[query + 1] - start
        shown = min(size, places)
        for version in range(versions):
            order = start + np.argsort(-served[start : start + size, version])
            for place in range(shown):
                impressions[order[place]] += sessions
            for session in range(sessions):
                last = -1
                for place in range(shown):
                    document = order[place]
                    draw = draws[query, version, session, place]
                    if draw[0] < attraction[document]:
                        last = document
                        if draw[1] < satisfaction[document]:
                            break
                    if draw[2] >= go_on:
                        break
                if last >= 0:
                    last_clicks[last] += 1
