"""Reading and writing LETOR text: features of the format, errors, agreement with other readers."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from gradrank.data.formats import letor
from gradrank.data.formats.letor import read_letor, write_letor
from gradrank.data.ranking_data import RankingData
from gradrank.data.strings import Strings
from gradrank.errors import DataError


@pytest.fixture
def write(tmp_path):
    def write(content: str | bytes, name: str = "data.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def same(one: RankingData, other: RankingData) -> None:
    assert one.X.shape == other.X.shape
    np.testing.assert_array_equal(one.X.view(np.uint32), other.X.view(np.uint32))
    np.testing.assert_array_equal(one.label(), other.label())
    np.testing.assert_array_equal(one.indptr, other.indptr)
    assert one.qid == other.qid
    assert one.docid == other.docid
    assert (one.rows is None) == (other.rows is None)
    if one.rows is not None:
        np.testing.assert_array_equal(one.rows, other.rows)


class TestFormat:
    def test_plain(self, write):
        data = read_letor(write("2 qid:10 1:0.5 2:-1e-3 3:7\n0 qid:10 1:1 2:2 3:3\n1.5 qid:11 1:0 2:0 3:.25\n"))
        np.testing.assert_array_equal(data.X, np.array([[0.5, -1e-3, 7], [1, 2, 3], [0, 0, 0.25]], dtype=np.float32))
        assert data.X.dtype == np.float32
        assert data.X.flags.c_contiguous
        assert data.label().tolist() == [2, 0, 1.5]
        assert data.label_names == ("label",)
        assert data.indptr.tolist() == [0, 2, 3]
        assert list(data.qid) == ["10", "11"]
        assert data.docid is None
        assert data.rows is None
        assert data.feature_names == ("f1", "f2", "f3")

    @pytest.mark.parametrize(
        "text",
        [
            "1 qid:a 1:2 2:3\n0 qid:b 1:4 2:5\n",
            "1 qid:a 1:2 2:3\n0 qid:b 1:4 2:5",
            "1 qid:a 1:2 2:3\r\n0 qid:b 1:4 2:5\r\n",
            "1 qid:a 1:2 2:3\r\n0 qid:b 1:4 2:5\r",
            "\n\n1 qid:a 1:2 2:3\n  \t\n# a comment\n   #another one\n0 qid:b 1:4 2:5\n\n",
            "  1\tqid:a \t 1:2  2:3  \n\t0 qid:b 2:5\t1:4 \n",
            "+1.0 qid:a 01:2.0 2:+3 #\n0e5 qid:b 2:5 1:0.4E+1 # two words\n",
            "\ufeff1 qid:a 1:2 2:3\n0 qid:b 1:4 2:5\n",
        ],
        ids=["lf", "no last newline", "crlf", "cr at the end", "blank and comment lines", "blanks", "numbers", "bom"],
    )
    def test_same_data_written_differently(self, write, text):
        data = read_letor(write(text))
        assert data.X.tolist() == [[2, 3], [4, 5]]
        assert data.label().tolist() == [1, 0]
        assert list(data.qid) == ["a", "b"]
        assert data.docid is None

    def test_absent_features_are_zero(self, write):
        data = read_letor(write("0 qid:1\n0 qid:1 5:1\n0 qid:1 2:3\n"))
        assert data.X.tolist() == [[0] * 5, [0, 0, 0, 0, 1], [0, 3, 0, 0, 0]]

    def test_highest_index_not_last_in_its_line(self, write):
        data = read_letor(write("0 qid:1 7:1 2:2\n0 qid:1 3:1 1:4\n"))
        assert data.X.tolist() == [[0, 2, 0, 0, 0, 0, 1], [4, 0, 1, 0, 0, 0, 0]]

    def test_no_features_at_all(self, write):
        assert read_letor(write("1 qid:1 # a\n0 qid:1 # b\n")).X.shape == (2, 0)

    def test_absent_features(self, write):
        text = "2 qid:1 1:5 3:0\n0 qid:1 2:6 # no more\n1 qid:2\n1 qid:2 4:16777217\n"
        nan = np.nan
        expected = [[5, nan, 0, nan], [nan, 6, nan, nan], [nan] * 4, [nan, nan, nan, 16777217]]
        for chunk in (1, 1 << 20):  # the last line's number needs float64, for which all is read again
            data = read_letor(write(text), absent_missing=True, _chunk_bytes=chunk)
            assert np.array_equal(data.X, expected, equal_nan=True)
        assert np.array_equal(read_letor(write(text)).X, np.nan_to_num(expected))

    def test_zero_based(self, write):
        assert read_letor(write("0 qid:1 0:5 2:6\n"), zero_based=True).X.tolist() == [[5, 0, 6]]

    def test_number_of_features_given(self, write):
        path = write("0 qid:1 1:5 3:6\n")
        assert read_letor(path, n_features=5).X.tolist() == [[5, 0, 6, 0, 0]]
        assert read_letor(path, n_features=3).n_features == 3
        with pytest.raises(DataError, match=r"data.txt:1: the feature index in '3:6' is too high: n_features allows 2"):
            read_letor(path, n_features=2)
        with pytest.raises(DataError, match="is -1"):
            read_letor(path, n_features=-1)

    def test_query_ids_are_any_words(self, write):
        data = read_letor(write("0 qid:a:b 1:1\n0 qid:ключ 1:1\n0 qid:-3 1:1\n0 qid:03 1:1\n0 qid:3 #c\n"))
        assert list(data.qid) == ["a:b", "ключ", "-3", "03", "3"]

    @pytest.mark.parametrize(
        ("comment", "docid"),
        [
            ("#docid = GX1 inc = 1 prob = 0.5", "GX1"),
            ("# docid=GX1", "GX1"),
            ("# docid: GX1 more", "GX1"),
            ("#docid:GX1", "GX1"),
            ("# inc = 1 docid\t=\tGX1", "GX1"),
            ("#GX1", "GX1"),
            ("#  GX1  \r", "GX1"),
            ("#docid = GX1#2", "GX1#2"),
            ("#docid = docid=1", "docid=1"),
            ("#dociD", "dociD"),
            ("# docid = документ", "документ"),
            ("# two words", ""),
            ("# docid =", ""),
            ("#docids = 5", ""),
            ("#", ""),
            ("", ""),
        ],
    )
    def test_docid(self, write, comment, docid):
        data = read_letor(write(f"0 qid:1 1:1 {comment}\n0 qid:1 1:1 #docid = other\n"))
        assert list(data.docid) == [docid, "other"]

    def test_missing(self, write):
        path = write("nan qid:1 1:NaN 2:1\n1 qid:1 1:-nan 2:NAN\n")
        data = read_letor(path, missing=True)
        np.testing.assert_array_equal(data.X, [[np.nan, 1], [np.nan, np.nan]])
        np.testing.assert_array_equal(data.label(), [np.nan, 1])

    def test_compressed(self, tmp_path):
        path = tmp_path / "data.txt.gz"
        path.write_bytes(gzip.compress(b"1 qid:1 1:2\n"))
        assert read_letor(path).X.tolist() == [[2]]


class TestQueries:
    def test_split_query_is_one_query(self, write):
        data = read_letor(
            write("0 qid:b 1:0 #d0\n1 qid:a 1:1 #d1\n2 qid:b 1:2 #d2\n3 qid:a 1:3 #d3\n4 qid:c 1:4 #d4\n")
        )
        assert list(data.qid) == ["b", "a", "c"]
        assert data.indptr.tolist() == [0, 2, 4, 5]
        assert data.rows.tolist() == [0, 2, 1, 3, 4]
        assert data.X[:, 0].tolist() == [0, 2, 1, 3, 4]
        assert data.label().tolist() == [0, 2, 1, 3, 4]
        assert list(data.docid) == ["d0", "d2", "d1", "d3", "d4"]

    @pytest.mark.parametrize("chunk", [1, 1 << 20])
    def test_split_query_refused(self, write, chunk):
        path = write("0 qid:b 1:0\n\n1 qid:a1 1:1\n1 qid:a1 1:1\n1 qid:b 1:2\n1 qid:a1 1:3\n")
        with pytest.raises(DataError, match=r"data.txt:5: query 'b' comes again"):
            read_letor(path, regroup=False, _chunk_bytes=chunk)

    def test_consecutive_queries_pass_without_regrouping(self, write):
        data = read_letor(write("0 qid:b 1:0\n1 qid:b 1:1\n1 qid:a 1:2\n"), regroup=False, _chunk_bytes=1)
        assert data.indptr.tolist() == [0, 2, 3]
        assert data.rows is None

    def test_same_grouping_as_from_arrays(self, write):
        generator = np.random.default_rng(5)
        qid = generator.integers(0, 300, 1000)
        path = write("".join(f"{row} qid:{query} 1:{row}\n" for row, query in enumerate(qid)))
        expected = RankingData.from_arrays(np.arange(1000.0)[:, None], np.arange(1000), qid=qid)
        same(read_letor(path), expected)


class TestGroupSizes:
    TEXT = "1 1:1\n0 1:2\n0 1:3 #a\n"

    @pytest.mark.parametrize("suffix", [".query", ".group"])
    def test_file_beside(self, write, suffix):
        write("2\n1\n", "data.txt" + suffix)
        data = read_letor(write(self.TEXT))
        assert data.indptr.tolist() == [0, 2, 3]
        assert list(data.qid) == ["1", "2"]
        assert list(data.docid) == ["", "", "a"]

    def test_file_beside_compressed_data(self, tmp_path, write):
        write("3\n", "data.txt.query")
        path = tmp_path / "data.txt.gz"
        path.write_bytes(gzip.compress(self.TEXT.encode()))
        assert read_letor(path).indptr.tolist() == [0, 3]

    def test_file_given(self, write):
        sizes = write("1\r\n2\r\n\r\n", "sizes")
        assert read_letor(write(self.TEXT), group_file=sizes).indptr.tolist() == [0, 1, 3]

    def test_ids_win_over_a_file_beside(self, write):
        write("1\n1\n", "data.txt.query")
        assert read_letor(write("1 qid:7 1:1\n0 qid:7 1:1\n")).indptr.tolist() == [0, 2]

    @pytest.mark.parametrize(
        ("sizes", "message"),
        [
            ("2\n2\n", r"sizes: the group sizes add up to 4, but .*data.txt holds 3 documents"),
            ("2\n", r"sizes: the group sizes add up to 2, but .*data.txt holds 3"),
            ("3\n0\n", r"sizes:2: group size is 0, expected a whole number"),
            ("1.5\n1.5\n", r"sizes:1: group size is 1.5"),
            ("2\n-1\n2\n", r"sizes:2: group size is -1"),
            ("1e300\n", r"sizes:1: group size is 1e\+300"),
            ("2\nx\n", r"sizes:2: found 'x' in the group sizes"),
            ("", r"sizes: holds no group sizes"),
        ],
    )
    def test_wrong_sizes(self, write, sizes, message):
        with pytest.raises(DataError, match=message):
            read_letor(write(self.TEXT), group_file=write(sizes, "sizes"))

    def test_ids_in_spite_of_sizes(self, write):
        path = write("1 1:1\n0 qid:3 1:2\n")
        with pytest.raises(DataError, match=r"data.txt:2: found 'qid:3', but the queries are given by group sizes"):
            read_letor(path, group_file=write("2\n", "sizes"))

    def test_size_file_missing(self, write, tmp_path):
        with pytest.raises(DataError, match=r"nothing\.query: there is no such file"):
            read_letor(write(self.TEXT), group_file=tmp_path / "nothing.query")


GOOD = "1 qid:1 1:0.5 2:3 # docid = a\n"


class TestErrors:
    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("x qid:1 1:2", "label is 'x', expected a number"),
            ("1_0 qid:1 1:2", "label is '1_0', expected a number"),
            ("0x1 qid:1 1:2", "label is '0x1', expected a number"),
            ("qid:1 1:2", "label is 'qid:1', expected a number"),
            ("nan qid:1 1:2", "label is 'nan'; to take it as unjudged, read with --missing (missing=True in Python)"),
            ("-inf qid:1 1:2", "label is '-inf', expected a finite number"),
            ("1e39 qid:1 1:2", "label '1e39' is too large for float32"),
            ("1", "there is no query id: found nothing behind the label"),
            ("1 # qid:1", "there is no query id: found nothing behind the label"),
            ("1 1:2 2:3", "there is no query id: found '1:2' behind the label, expected qid:ID"),
            ("1 QID:1 2:3", "there is no query id: found 'QID:1'"),
            ("1 qid: 1:2", "the query id behind 'qid:' is empty"),
            ("1 qid:#3", "the query id behind 'qid:' is empty"),
            ("1 qid:C# 1:2", "the query id in 'qid:C' has a '#' directly behind it, which starts a comment"),
            ("1 qid:a\x01b 1:2", "the query id in 'qid:a\\x01b' holds a control character"),
            ("1 qid:1 2", "found '2' without a colon, expected index:value"),
            ("1 qid:1 1:2 2", "found '2' without a colon"),
            ("1 qid:1 1:", "'1:' has no value; the line may be cut short"),
            ("1 qid:1 1: 2:3", "'1:' has no value"),
            ("1 qid:1 1:2 :3", "found ':3', expected index:value"),
            ("1 qid:1 a:3", "found 'a:3', expected index:value with a whole number as feature index"),
            ("1 qid:1 -1:3", "found '-1:3', expected index:value"),
            ("1 qid:1 1.5:3", "found '1.5:3', expected index:value"),
            ("1 qid:1 qid:2 1:3", "found 'qid:2', expected index:value"),
            (
                "1 qid:1 0:3",
                "feature index 0 in '0:3', expected 1 or more; "
                "if indices start at 0, read with --zero-based (zero_based=True in Python)",
            ),
            ("1 qid:1 00:3", "feature index 0 in '00:3'"),
            ("1 qid:1 100001:3", "the feature index in '100001:3' is too high: max_features allows 100000 features"),
            ("1 qid:1 18446744073709551617:3", "the feature index in '18446744073709551617:3' is too high"),
            ("1 qid:1 1:2 3:1 1:2", "the feature of '1:2' is given twice in this line"),
            ("1 qid:1 9:2 3:1 9:2", "the feature of '9:2' is given twice in this line"),
            ("1 qid:1 3:abc", "the value in '3:abc' is not a number"),
            ("1 qid:1 3:1.2.3", "the value in '3:1.2.3' is not a number"),
            ("1 qid:1 3:1:2", "the value in '3:1:2' is not a number"),
            ("1 qid:1 3:1e", "the value in '3:1e' is not a number"),
            ("1 qid:1 3:--1", "the value in '3:--1' is not a number"),
            ("1 qid:1 3:.", "the value in '3:.' is not a number"),
            ("1 qid:1 3:1_000", "the value in '3:1_000' is not a number"),
            (
                "1 qid:1 3:nan",
                "the value in '3:nan' is not a number; "
                "to take it as missing, read with --missing (missing=True in Python)",
            ),
            ("1 qid:1 3:Infinity", "the value in '3:Infinity' is infinite, expected a finite number"),
            ("1 qid:1 3:-1e39", "the value in '3:-1e39' is too large for float32"),
            ("1 qid:1 3:" + "9" * 60, "the value in '3:99999999999999999999999999999999999999…' is too large"),
            ("1 qid:1 3:3.40282356779733661637539395458142568448", "is too large for float32"),
            ("1\x00\x02 qid:1", "label is '1\\x00\\x02', expected a number; this looks like a binary file"),
        ],
    )
    @pytest.mark.parametrize("chunk", [1, 1 << 20])
    def test_line(self, write, line, message, chunk):
        if "3.4028235677973366" in line:
            line += "e38"
        path = write(GOOD + "\r\n" + GOOD + line + "\r\n" + GOOD + "broken, too\n")
        with pytest.raises(DataError) as caught:
            read_letor(path, _chunk_bytes=chunk)
        assert str(caught.value).startswith(f"{path}:4: ")
        assert message in str(caught.value)

    def test_infinite_is_never_missing(self, write):
        with pytest.raises(DataError, match="'1:inf' is infinite"):
            read_letor(write("1 qid:1 1:inf\n"), missing=True)

    def test_no_colon_in_cut_last_line(self, write):
        with pytest.raises(DataError, match=r"data.txt:2: found '12' without a colon"):
            read_letor(write(GOOD + "1 qid:1 1:0.5 12"))

    @pytest.mark.parametrize("where", ["qid:\udce9", "qid:1 1:2 # docid = \udce9", "qid:1 1:2 #\udce9"])
    def test_not_utf8(self, write, where):
        path = write((GOOD + f"1 {where}\n").encode(errors="surrogateescape"))
        with pytest.raises(DataError, match=r"data.txt:2: the id in .* is not UTF-8"):
            read_letor(path)

    def test_other_comments_may_be_in_any_encoding(self, write):
        assert read_letor(write(b"1 qid:1 1:2 # caf\xe9 docid = a\n")).docid.to_list() == ["a"]

    @pytest.mark.parametrize("text", ["", "\n\n", "# only\n#comments", " \t\r\n", "\ufeff"])
    def test_empty(self, write, text):
        with pytest.raises(DataError, match=r"data\.txt: holds no documents"):
            read_letor(write(text))

    def test_binary(self, write):
        with pytest.raises(DataError, match=r"data.txt:\d+: "):
            read_letor(write(np.random.default_rng(3).bytes(100_000)))

    def test_no_such_file(self, tmp_path):
        with pytest.raises(DataError, match=r"nothing\.txt: there is no such file"):
            read_letor(tmp_path / "nothing.txt")

    def test_more_than_memory(self, write, monkeypatch):
        monkeypatch.setattr(letor, "memory_limit", lambda: 1_000_000)
        path = write("1 qid:1 90000:1\n" * 3)
        with pytest.raises(DataError, match=r"3 documents with 90,000 features .* need 0.0 GB, more than"):
            read_letor(path)

    def test_allocation_fails(self, write, monkeypatch):
        def refuse(*_: object, **__: object) -> None:
            raise MemoryError

        path = write("1 qid:1 1:1\n")
        monkeypatch.setattr(letor.np, "zeros", refuse)
        with pytest.raises(DataError, match="memory"):
            read_letor(path)

    def test_most_features_there_can_be(self, write):
        path = write("1 qid:1 2000000000:1\n")
        with pytest.raises(DataError, match="too high"):
            read_letor(path, max_features=10**12)


def made_up(n_docs: int, n_features: int, random_state: int = 0) -> RankingData:
    generator = np.random.default_rng(random_state)
    features = np.round(generator.normal(size=(n_docs, n_features)), 6)
    features[generator.random(features.shape) < 0.3] = 0
    return RankingData.from_arrays(
        features,
        generator.integers(0, 5, n_docs),
        qid=np.sort(generator.integers(0, 1 + n_docs // 10, n_docs)),
        docid=[f"doc{row}" if row % 3 else "" for row in range(n_docs)],
    )


class TestParts:
    @pytest.mark.parametrize("n_jobs", [1, 2, 3])
    @pytest.mark.parametrize("chunk", [1, 100, 5000])
    def test_same_result_however_the_file_is_cut(self, tmp_path, n_jobs, chunk):
        data = made_up(300, 7)
        write_letor(data, tmp_path / "a.txt")
        same(read_letor(tmp_path / "a.txt", n_jobs=n_jobs, _chunk_bytes=chunk), data)

    @pytest.mark.parametrize("chunk", [1, 64, 1 << 20])
    def test_first_error_in_file_order(self, write, chunk):
        path = write(GOOD * 10 + "1 qid:1 9:1 9:1 1:x\n" + GOOD * 10 + "1 qid:1 1:x\n" + GOOD * 5)
        for n_jobs in (1, 3):
            with pytest.raises(DataError, match=r"data.txt:11: the feature of '9:1' is given twice"):
                read_letor(path, n_jobs=n_jobs, _chunk_bytes=chunk)

    def test_many_numbers_left_to_python(self, write):
        # Halfway between two float32, then a little more than 19 digits can tell.
        token = "1.000000059604644775390625000001"
        path = write(f"{token} qid:1 1:{token}\n" * 100)
        data = read_letor(path)
        expected = np.float32(float(token))
        assert (expected == data.X).all()
        assert (data.label() == expected).all()

    @pytest.mark.parametrize("difference", [-1, 1])
    def test_file_changes_between_counting_and_parsing(self, write, monkeypatch, difference):
        scan = letor.kernel.scan_lines

        def miscount(*arguments: object) -> tuple[int, int, int]:
            rows, highest, first = scan(*arguments)
            return rows + difference, highest, first

        monkeypatch.setattr(letor.kernel, "scan_lines", miscount)
        with pytest.raises(DataError, match="the file changed while it was read"):
            read_letor(write(GOOD * 3))

    def test_no_threads(self, write):
        with pytest.raises(ValueError, match="n_jobs is 0"):
            read_letor(write(GOOD), n_jobs=0)


class TestOtherReaders:
    @pytest.mark.parametrize("zero_based", [True, False])
    def test_scikit_learn(self, tmp_path, zero_based):
        generator = np.random.default_rng(11)
        dense = generator.normal(size=(200, 30)) * 10.0 ** generator.integers(-12, 12, (200, 30))
        dense[generator.random(dense.shape) < 0.6] = 0
        label = generator.integers(0, 5, 200)
        qid = np.sort(generator.integers(0, 20, 200))
        path = tmp_path / "sk.txt"
        dump_svmlight_file(dense, label, str(path), query_id=qid, zero_based=zero_based, comment="made up")
        features, labels, queries = load_svmlight_file(str(path), zero_based=zero_based, query_id=True, n_features=30)
        data = read_letor(path, zero_based=zero_based, n_features=30)
        np.testing.assert_array_equal(data.X, features.toarray().astype(np.float32))
        np.testing.assert_array_equal(data.label(), labels)
        assert np.repeat(data.qid.to_list(), data.sizes).astype(int).tolist() == queries.tolist()

    def test_scikit_learn_reads_what_we_write(self, tmp_path):
        data = made_up(100, 9)
        path = tmp_path / "a.txt"
        write_letor(data, path)
        features, labels, queries = load_svmlight_file(str(path), zero_based=False, query_id=True, dtype=np.float64)
        np.testing.assert_array_equal(features.toarray().astype(np.float32), data.X)
        np.testing.assert_array_equal(labels, data.label())
        np.testing.assert_array_equal(queries, np.repeat(data.qid.to_list(), data.sizes).astype(int))


FLOATS = st.floats(width=32, allow_infinity=False, allow_nan=True)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=6).map(
    lambda word: "".join(word.replace("#", "").split(" "))
)


@st.composite
def ranking_data(draw: st.DrawFn) -> RankingData:
    n_docs = draw(st.integers(1, 8))
    n_features = draw(st.integers(0, 6))
    zeros = draw(st.booleans())
    values = st.one_of(st.just(0.0), st.just(0.0), FLOATS) if zeros else FLOATS
    features = draw(arrays.arrays(np.float32, (n_docs, n_features), elements=values))
    labels = draw(arrays.arrays(np.float32, n_docs, elements=FLOATS))
    qid = draw(st.lists(WORDS.filter(bool), min_size=n_docs, max_size=n_docs))
    docid = draw(st.none() | st.lists(WORDS, min_size=n_docs, max_size=n_docs).filter(any))
    return RankingData.from_arrays(features, labels, qid=qid, docid=docid)


class TestWriting:
    @settings(max_examples=200, deadline=None)
    @given(data=ranking_data())
    def test_reads_back_the_same(self, tmp_path_factory, data):
        path = tmp_path_factory.getbasetemp() / "round-trip.txt"
        write_letor(data, path)
        back = read_letor(path, missing=True)
        features, labels = np.asarray(data.X), data.label()
        assert (back.X.shape, back.X.dtype) == (features.shape, features.dtype)
        # NaN has many bit patterns, only one of which is written.
        np.testing.assert_array_equal(np.isnan(back.X), np.isnan(features))
        known = ~np.isnan(features)
        np.testing.assert_array_equal(back.X.view(np.uint32)[known], features.view(np.uint32)[known])
        np.testing.assert_array_equal(back.label(), labels)
        np.testing.assert_array_equal(back.indptr, data.indptr)
        assert back.qid == data.qid
        assert back.docid == data.docid

    def test_dense(self, tmp_path):
        data = RankingData.from_arrays([[0, 1], [0.25, 0]], [1, 0.5], qid=["a", "b"], docid=["", "x"])
        write_letor(data, tmp_path / "a.txt")
        assert (tmp_path / "a.txt").read_text() == "1 qid:a 1:0 2:1\n0.5 qid:b 1:0.25 2:0 #docid = x\n"

    def test_sparse(self, tmp_path):
        data = RankingData.from_arrays([[0, 1, 0], [0, 0, 0], [np.nan, -0.0, 0]], [1, 100, np.nan], qid=[1, 1, 1])
        write_letor(data, tmp_path / "a.txt")
        assert (tmp_path / "a.txt").read_text() == "1 qid:1 2:1 3:0\n100 qid:1\nnan qid:1 1:nan 2:-0\n"

    def test_label_column(self, tmp_path):
        data = RankingData.from_arrays([[1], [2]], {"label": [1, 0], "clicks": [0, 3]}, qid=[1, 1])
        write_letor(data, tmp_path / "a.txt", label="clicks")
        assert read_letor(tmp_path / "a.txt").label().tolist() == [0, 3]
        with pytest.raises(DataError, match="no label source 'views'"):
            write_letor(data, tmp_path / "b.txt", label="views")
        assert not (tmp_path / "b.txt").exists()

    def test_without_labels_all_are_unjudged(self, tmp_path):
        write_letor(RankingData.from_arrays([[1]], qid=[1]), tmp_path / "a.txt")
        assert np.isnan(read_letor(tmp_path / "a.txt", missing=True).label()).all()

    def test_several_blocks(self, tmp_path, monkeypatch):
        monkeypatch.setattr("gradrank.data.formats.letor_write._BLOCK_BYTES", 2000)
        data = made_up(500, 6)
        write_letor(data, tmp_path / "a.txt.xz")
        same(read_letor(tmp_path / "a.txt.xz"), data)

    @pytest.mark.parametrize(
        ("qid", "docid", "message"),
        [
            ("a b", "x", "query id 'a b'"),
            ("a#b", "x", "query id 'a#b'"),
            ("a\x01", "x", r"query id 'a\\x01'"),
            ("", "x", "empty id"),
            ("a", "x y", "document id 'x y'"),
            ("a", "x\n", r"document id 'x\\n'"),
        ],
    )
    def test_ids_that_would_not_read_back(self, tmp_path, qid, docid, message):
        data = RankingData.from_arrays([[1], [1]], [1, 1], qid=["ok", "b"], docid=["ok", docid])
        data = replace(data, qid=Strings.of(["ok", qid]))  # the door refuses an empty one
        with pytest.raises(DataError, match=message):
            write_letor(data, tmp_path / "a.txt")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_that_are_named_by_numbers_keep_them(tmp_path, dtype):
    X = np.array([[3, 1, 0], [0, 0, 2]], dtype=dtype)
    if dtype is np.float64:
        X[0, 0] = 16_777_217.0  # too much for float32
    data = RankingData.from_arrays(X, [1, 0], qid=[7, 7], feature_names=["f3", "f1", "f2"])
    assert data.X.dtype == dtype
    write_letor(data, tmp_path / "data.txt")
    back = read_letor(tmp_path / "data.txt")
    for name in ("f1", "f2", "f3"):
        there, here = back.feature_names.index(name), data.feature_names.index(name)
        assert np.array_equal(back.X[:, there], data.X[:, here]), name
    # Other names are none: columns are numbered as they stand.
    write_letor(RankingData.from_arrays(X, [1, 0], qid=[7, 7], feature_names=["f3", "b", "f2"]), tmp_path / "other.txt")
    assert np.array_equal(read_letor(tmp_path / "other.txt").X, X)
