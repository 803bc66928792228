"""Which column is what: roles by argument, by record, by name, and what never becomes a feature."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.data.roles import LABEL_LIKE, Columns, plain_name, resolve_roles
from gradrank.errors import DataError, GradrankWarning


@pytest.mark.parametrize("name", ["qid", "query_id", "QID", "Query-Id", "queryId", "query id"])
def test_queries_by_name(name):
    roles = resolve_roles(["f", name], Columns())
    assert (roles.qid, roles.features) == (name, ("f",))


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("docid", "docid"),
        ("DocNo", "docid"),
        ("document_id", "docid"),
        ("weight", "weight"),
        ("Sample_Weight", "weight"),
    ],
)
def test_other_roles_by_name(name, role):
    roles = resolve_roles(["qid", "f", name], Columns())
    assert getattr(roles, role) == name
    assert roles.features == ("f",)


@pytest.mark.parametrize("name", ["grade", "clicks", "purchases", "Relevance", "rel", "rating", "target", "labels"])
def test_what_looks_like_a_label_is_refused_until_it_is_said_what_it_is(name):
    for names in (["qid", name, "f"], ["qid", "label", name, "f"], ["qid", "label:a", name, "f"]):
        with pytest.raises(DataError, match=rf"column '{name}' looks like a label.*labels=.*keep=.*ignore="):
            resolve_roles(names, Columns())
    names = ["qid", "label", name, "f"]
    assert resolve_roles(names, Columns(labels=["label", name])).features == ("f",)
    assert resolve_roles(names, Columns(keep=[name])).features == (name, "f")
    assert resolve_roles(names, Columns(ignore=[name])).features == ("f",)
    assert resolve_roles(names, Columns(features=[name])).features == (name,)
    assert resolve_roles(names, Columns(features=["f"])).features == ("f",)


def test_all_of_them_are_named():
    with pytest.raises(DataError, match=r"columns 'grade', 'clicks' look like labels.*labels=\['grade', 'clicks'\]"):
        resolve_roles(["qid", "grade", "clicks", "f"], Columns())


def test_other_labels_are_left_out_with_a_warning():
    roles = resolve_roles(["qid", "grade", "clicks", "label", "f"], Columns(labels="clicks"))
    assert (dict(roles.labels), roles.features) == ({"clicks": "clicks"}, ("f",))
    with pytest.warns(GradrankWarning, match="columns 'grade', 'label' look like labels, ids or weights") as caught:
        roles.warn_of_left_out()
    assert caught[0].filename == __file__


def test_no_labels_at_all():
    roles = resolve_roles(["qid", "label", "label:a", "clicks", "f"], Columns(labels=()))
    assert (dict(roles.labels), roles.features, roles.left_out) == ({}, ("f",), ("clicks",))


def test_a_second_id_is_no_feature():
    roles = resolve_roles(["query_id", "qid", "docno", "docid", "weight", "sample_weight", "f"], Columns())
    assert (roles.qid, roles.docid, roles.weight, roles.features) == ("qid", "docid", "weight", ("f",))
    assert roles.left_out == ("query_id", "docno", "sample_weight")
    roles = resolve_roles(["qid", "session", "f"], Columns(qid="session"))
    assert (roles.features, roles.left_out) == (("f",), ("qid",))
    assert resolve_roles(["qid", "session", "f"], Columns(qid="session", keep=["qid"])).features == ("qid", "f")


def test_what_is_given_beside_the_table_needs_no_column_and_no_warning():
    columns = Columns(given=("labels", "qid", "docid", "weight"), sources={"grade"})
    roles = resolve_roles(["qid", "label", "grade", "docid", "weight", "f"], columns)
    assert (roles.qid, roles.docid, roles.weight, dict(roles.labels)) == (None, None, None, {})
    assert (roles.features, roles.left_out) == (("f",), ())
    roles = resolve_roles(["clicks", "f"], columns)
    assert (roles.features, roles.left_out) == (("f",), ("clicks",))


def test_recorded_roles_hold():
    record = {"qid": "q", "docid": None, "weight": "w", "labels": {"a": "la"}, "features": ["qid", "grade"]}
    roles = resolve_roles(["q", "w", "la", "qid", "grade"], Columns(), record)
    assert (roles.qid, roles.weight, dict(roles.labels), roles.features) == ("q", "w", {"a": "la"}, ("qid", "grade"))
    # A column that was added later has no record, and goes by its name.
    with pytest.raises(DataError, match="column 'clicks' looks like a label"):
        resolve_roles(["q", "w", "la", "qid", "grade", "clicks"], Columns(), record)
    # A recorded label is no feature because another was asked for.
    roles = resolve_roles(["q", "w", "la", "qid", "grade"], Columns(labels="grade"), record)
    assert (dict(roles.labels), roles.features, roles.left_out) == ({"grade": "grade"}, ("qid",), ("la",))


NAMES = st.sampled_from(["f", "bm25", "grade", "clicks", "label", "label:x", "docid", "qid", "query_id", "weight", "Ä"])


@given(st.lists(NAMES, unique=True, max_size=8), st.sampled_from([None, (), "grade", ["label", "clicks"]]))
def test_every_column_has_one_role_and_no_label_is_a_feature(names, labels):
    wanted = [labels] if isinstance(labels, str) else list(labels or ())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            roles = resolve_roles(names, Columns(labels=labels))
    except DataError:
        missing = any(name not in names for name in wanted)
        nameless = "qid" not in names and "query_id" not in names
        assert missing or nameless or (labels is None and {"grade", "clicks"} & set(names))
        return
    assert sorted([*roles.named(), *roles.features, *roles.left_out]) == sorted(
        name for name in names if not (labels == () and name in ("label", "label:x"))
    )
    assert set(roles.features) <= {"f", "bm25", "Ä"}


def test_names_without_letters():
    assert plain_name("__") == ""
    assert "" not in LABEL_LIKE
    assert resolve_roles(["qid", "_", "__"], Columns()).features == ("_", "__")
