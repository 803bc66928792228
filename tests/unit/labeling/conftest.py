"""A small project: two queries, six documents, one assignment each for two assessors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gradrank.labeling.project.assignment import assign
from gradrank.labeling.project.importing import import_files
from gradrank.labeling.project.store import Store, create_project

DOCUMENTS = [f"d{number}" for number in range(1, 7)]


@pytest.fixture
def make_project(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Makes projects; ``make_project(strategies=["grades"])`` and so on."""
    opened = []

    def make(
        *, assessors: int = 2, overlap: int = 1, k: int = 3, strategies: tuple[str, ...] = ("tournament",)
    ) -> Store:
        (tmp_path / "queries.tsv").write_text("q1\twhy is the sky blue\tphysics\nq2\ttall mountains\n")
        (tmp_path / "documents.tsv").write_text("".join(f"{name}\ttext of {name}\n" for name in DOCUMENTS))
        store = create_project(tmp_path / f"project{len(opened)}.db", title="Test")
        opened.append(store)
        found = import_files(store, queries=tmp_path / "queries.tsv", documents=[tmp_path / "documents.tsv"])
        assert found.faults == []
        assign(store, assessors=assessors, overlap=overlap, k=k, strategies=strategies)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def project(make_project: Callable[..., Store]) -> Store:
    return make_project()
