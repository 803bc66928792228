"""Values that float32 would make equal stay apart: in memory, in every format, in training and in scoring."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradrank.data.artificial import make_data
from gradrank.data.formats.binary import open_binary, write_binary_blocks
from gradrank.data.formats.letor import read_letor
from gradrank.data.formats.registry import FORMATS, read_data, write_data
from gradrank.data.frames import from_frame, to_frame
from gradrank.data.precision import fitting_matrix
from gradrank.data.ranking_data import RankingData
from gradrank.data.splits import concatenate, split_queries
from gradrank.learners import LambdaMART, LambdaRank, RankBoost, RankSVM
from gradrank.models.registry import load_ranker

pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

START = 1_700_000_000


def epochs(n_docs: int = 12_467, size: int = 7, extra: int = 2) -> RankingData:
    """Documents a second apart, the newest of a query being the relevant one, and features that tell nothing."""
    rng = np.random.default_rng(7)
    seconds = START + rng.permutation(n_docs)
    query = np.arange(n_docs) // size
    newest = np.maximum.reduceat(seconds, np.arange(0, n_docs, size))
    X = np.column_stack([seconds, rng.normal(size=(n_docs, extra))])
    return RankingData.from_arrays(X, seconds == newest[query], qid=query)


def distinct(data: RankingData) -> int:
    return len(np.unique(np.asarray(data.X[:, 0], dtype=np.float64)))


# ---------------------------------------------------------------------- the rule
def test_seconds_stay_apart():
    data = epochs()
    assert len(np.unique(data.X[:, 0].astype(np.float32))) == 98
    assert distinct(data) == 12_467


@pytest.mark.parametrize(
    "column",
    [
        START + np.arange(2),
        np.array([16_777_217, 3]),
        np.array([-16_777_217.0, np.nan]),
        START + np.array([0.25, 0.5]),
        np.array([0.0, START + 1]),
        1000.0 + np.arange(5000) * 1e-5,
        np.array([2**40 + 1, 0], dtype=np.uint64),
    ],
    ids=["two", "integer", "negative", "fractions of seconds", "missing as zero", "narrow range", "unsigned"],
)
def test_kept_in_float64(column):
    X = np.column_stack([np.zeros(len(column)), column])
    assert fitting_matrix(X).dtype == np.float64
    assert np.array_equal(RankingData.from_arrays(X, qid=[1] * len(X)).X, X, equal_nan=True)


@pytest.mark.parametrize(
    "column",
    [
        np.random.default_rng(0).normal(size=20_000),
        np.random.default_rng(0).random(20_000) * 1e-30,
        np.random.default_rng(0).exponential(size=20_000) * 1e7,
        np.arange(16_777_216 - 100, 16_777_217),
        np.array([2.0**24, 2.0**40, 3 * 2.0**60, -(2.0**30)]),
        np.full(10, 0.1),
        np.round(np.random.default_rng(0).random(20_000) * 60, 6),
        np.array([np.nan, np.nan]),
        np.array([1e30, 2e30]),
    ],
    ids=["normal", "tiny", "large", "whole", "powers", "constant", "six decimals", "missing", "beyond doubles"],
)
def test_held_in_float32(column):
    X = column[:, None]
    assert fitting_matrix(X).dtype == np.float32
    assert np.array_equal(fitting_matrix(X), X.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint16, bool])
def test_narrow_types_need_no_look(dtype):
    assert fitting_matrix(np.array([[1], [0]], dtype=dtype)).dtype == np.float32


def test_rare_numbers_are_found_wherever_they_are():
    X = np.random.default_rng(1).integers(0, 1000, (50_000, 3)).astype(np.float64)
    assert fitting_matrix(X).dtype == np.float32
    X[31_337, 1] = START + 1
    assert fitting_matrix(X)[31_337, 1] == START + 1


@settings(max_examples=100)
@given(st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=30))
def test_no_two_whole_numbers_become_equal(values):
    data = RankingData.from_arrays(np.array(values)[:, None], qid=[1] * len(values))
    assert data.X[:, 0].tolist() == values


# ---------------------------------------------------------------------- formats
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_every_format_keeps_them(tmp_path, form):
    data = epochs()
    write_data(data, tmp_path / "a", format=form.name)
    back = read_data(tmp_path / "a", format=form.name)
    assert back.X.dtype == np.float64
    assert np.array_equal(back.X, data.X)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_every_format_keeps_float32_as_it_is(tmp_path, form):
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(6000, 4)) * 10.0 ** rng.integers(-20, 20, (6000, 4))).astype(np.float32)
    data = RankingData.from_arrays(X, np.zeros(6000), qid=np.arange(6000) // 9)
    write_data(data, tmp_path / "a", format=form.name)
    back = read_data(tmp_path / "a", format=form.name)
    assert back.X.dtype == np.float32
    assert np.array_equal(back.X, X)


def values_of_several_kinds() -> st.SearchStrategy[float]:
    return st.one_of(
        st.floats(-1e30, 1e30),
        st.integers(-(2**53), 2**53).map(float),
        st.floats(START, START + 1000),
        st.floats(width=32, min_value=-(2.0**100), max_value=2.0**100),
        st.just(0.0),
    )


@settings(max_examples=60)
@given(st.lists(st.tuples(values_of_several_kinds(), values_of_several_kinds()), min_size=1, max_size=12))
def test_all_ways_into_gradrank_agree(tmp_path_factory, rows):
    X = np.array(rows)
    folder = tmp_path_factory.mktemp("formats")
    expected = RankingData.from_arrays(X, np.zeros(len(X)), qid=[1] * len(X))
    frame = pd.DataFrame({"qid": 1, "f1": X[:, 0], "f2": X[:, 1]})
    (folder / "a.txt").write_text("".join(f"0 qid:1 1:{a!r} 2:{b!r}\n" for a, b in rows))
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_parquet(folder / "a.parquet")
    ways = [from_frame(frame), from_frame(pl.from_pandas(frame))]
    ways += [read_data(folder / name) for name in ("a.txt", "a.csv", "a.parquet")]
    for form in FORMATS:
        path = folder / f"again-{form.name}"
        write_data(expected, path, format=form.name)
        ways.append(read_data(path, format=form.name))
    for way in ways:
        assert way.X.dtype == expected.X.dtype
        assert np.array_equal(way.X, expected.X)


def test_letor_text_in_many_parts(tmp_path):
    data = epochs(6000)
    write_data(data, tmp_path / "a.txt")
    for chunk in (1 << 10, 1 << 14, 1 << 20):
        assert np.array_equal(read_letor(tmp_path / "a.txt", _chunk_bytes=chunk).X, data.X)


def test_long_numbers_in_many_parts_stay_float32(tmp_path):
    X = np.random.default_rng(5).normal(size=(6000, 3))
    lines = (f"# comment\n0 qid:1 1:{a!r} 2:{b!r} 3:{c!r}\n" for a, b, c in X.tolist())
    (tmp_path / "a.txt").write_text("".join(lines))
    for chunk in (1 << 10, 1 << 20):
        found = read_letor(tmp_path / "a.txt", _chunk_bytes=chunk).X
        assert found.dtype == np.float32
        assert np.array_equal(found, X.astype(np.float32))


def test_binary_stays_a_memory_map(tmp_path):
    write_data(epochs(), tmp_path / "a.gradrank")
    data = open_binary(tmp_path / "a.gradrank")
    assert isinstance(data.X, np.memmap)
    assert (data.X.dtype, distinct(data)) == (np.float64, 12_467)


def test_blocks_of_both_kinds(tmp_path):
    narrow = RankingData.from_arrays([[1.0, 2.0, 3.0]], [0], qid=["narrow"])
    wide = epochs(700)
    for blocks in ([narrow, wide], [wide, narrow]):
        write_binary_blocks(blocks, tmp_path / "a.gradrank")
        data = open_binary(tmp_path / "a.gradrank")
        assert isinstance(data.X, np.memmap)
        assert np.array_equal(data.X, concatenate(blocks).X)
    assert sorted(path.suffix for path in (tmp_path / "a.gradrank").iterdir() if path.stem == "X") == [".bin"]


def test_frames_of_all_kinds_go_there_and_back():
    data = epochs(700)
    for kind in ("pandas", "polars", "arrow"):
        assert np.array_equal(from_frame(to_frame(data, kind)).X, data.X)
    assert to_frame(data)["f1"].tolist() == data.X[:, 0].tolist()


# ---------------------------------------------------------------------- training and scoring
LEARNERS = [
    LambdaMART("NDCG@1", n_estimators=60, num_leaves=16, min_child_samples=5, learning_rate=0.3, max_bin=60_000),
    RankBoost(max_bin=1000, n_estimators=30),
    RankSVM(),
    LambdaRank("NDCG@1", hidden_layer_sizes=(), epochs=10),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_what_float32_makes_equal_is_learned_and_scored(learner, tmp_path):
    # All within 18 s: to float32 they are all the same, and nothing could be learned.
    rng = np.random.default_rng(2)
    seconds = START + 1 + rng.permuted(np.tile(np.arange(18), (60, 1)), axis=1)[:, :7].reshape(-1)
    query = np.arange(len(seconds)) // 7
    newest = np.maximum.reduceat(seconds, np.arange(0, len(seconds), 7))[query]
    assert len(np.unique(seconds.astype(np.float32))) == 1
    X = np.column_stack([seconds, rng.normal(size=len(seconds))])
    data = RankingData.from_arrays(X, (seconds == newest).astype(int), qid=query)
    learner.fit(data)
    assert learner.score(data) > 0.9
    scores = learner.predict(data)
    learner.ranker_.save(tmp_path / "model")
    model = load_ranker(tmp_path / "model")
    frame = to_frame(data)
    for scored in (model.predict(data), model.predict(X), model.predict(frame), model.predict(pl.from_pandas(frame))):
        np.testing.assert_allclose(scored, scores, rtol=1e-12)


def test_a_tree_splits_between_two_seconds(tmp_path):
    X = np.array([[START], [START + 1]] * 40)
    data = RankingData.from_arrays(X, [0, 1] * 40, qid=np.arange(80) // 2)
    learner = LambdaMART("NDCG@1", n_estimators=1, num_leaves=2, min_child_samples=1).fit(data)
    low, high = learner.predict([[START], [START + 1]])
    assert low < high
    [tree] = learner.ranker_.trees
    assert START <= tree.threshold[0] < START + 1
    write_data(data, tmp_path / "a.gradrank")
    mapped = open_binary(tmp_path / "a.gradrank")
    many = learner.ranker_.predict(mapped)
    assert np.array_equal(many, learner.ranker_.score_by_walking(mapped))
    assert many.tolist() == [low, high] * 40


def test_parts_keep_the_precision_of_the_whole():
    data = epochs(700)
    train, test = split_queries(data, [0.5, 0.5])
    assert train.X.dtype == test.X.dtype == np.float64
    assert distinct(concatenate([train, test])) == 700


def test_artificial_data_is_float32():
    assert make_data(5).X.dtype == np.float32
