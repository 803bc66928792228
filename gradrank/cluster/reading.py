"""A worker's share of a data set: its files are read one at a time, and queries are brought together or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gradrank.cluster.child import Member
from gradrank.cluster.keys import query_keys
from gradrank.cluster.shards import Shard, fetched
from gradrank.cluster.travel import joined, pack, unpack
from gradrank.data.formats.registry import LETOR, format_to_read, read_data
from gradrank.data.ranking_data import RankingData, default_feature_names
from gradrank.errors import ClusterError, DataError, GradrankError, NoDocumentsError

_NAMED = 100
_WEIGHTS = ("query weights", "document weights")


@dataclass
class Piece:
    """What was read of one file."""

    number: int
    path: str
    data: RankingData
    letor: bool


def read_shard(shard: Shard, folder: Path, reading: Mapping[str, Any]) -> Piece | None:
    """Read one file, or a part of it; None if it holds nothing."""
    number, path, part, parts = shard
    with fetched(path, folder) as local:
        try:
            letor = format_to_read(local, reading.get("format")) is LETOR
            data = read_data(
                local, format=reading.get("format"), label_files=reading.get("labels"), **reading.get("options", {})
            )
        except NoDocumentsError:
            return None
        except DataError as error:
            raise DataError(
                error.message, path=path if error.path == str(local) else error.path, line=error.line
            ) from None
        except (OSError, GradrankError) as error:
            raise DataError(str(error), path=path) from None
        if str(local) != path and isinstance(data.X, np.memmap):
            data = replace(data, X=np.array(data.X))
    if parts > 1:
        first, end = data.n_queries * part // parts, data.n_queries * (part + 1) // parts
        if first == end:
            return None
        data = data.take_queries(np.arange(first, end))
    return Piece(number, path, replace(data, rows=None), letor)


def read_share(
    member: Member, shards: Sequence[Shard], reading: Mapping[str, Any], *, name: str, shuffle: bool = False
) -> RankingData:
    """The queries of this process, with the features and labels that all processes have.

    Parameters
    ----------
    member
        This process; all processes of the crew must call at the same time.
    shards
        The files of this process.
    reading
        How they are read: ``format``, ``options`` and ``labels`` of :func:`gradrank.read_data`.
    name
        What the data set is called in errors.
    shuffle
        Whether a query that stands in several files is brought together; otherwise it is refused.
    """
    failed: GradrankError | None = None
    pieces: list[Piece] = []
    try:
        for shard in shards:
            piece = read_shard(shard, member.folder, reading)
            if piece is not None:
                pieces.append(piece)
    except GradrankError as error:
        failed = error
    # Told to all, so that nobody waits for a process that has given up.
    together(member, failed)
    pieces = _alike(member, pieces)
    pieces = _whole_queries(member, pieces, name, shuffle)
    datas = [piece.data for piece in pieces]
    # Nothing but that list may hold on to what was read of single files.
    pieces.clear()
    own = joined(datas)
    return with_keys(_nobody_empty(member, own, name))


def with_keys(data: RankingData) -> RankingData:
    """The data with random draws that depend on the queries' ids instead of their places."""
    return replace(data, keys=query_keys(data.qid))


def together(member: Member, failed: Exception | None) -> None:
    """Raise in every process if one has failed: its own error there, in the others that this one ended it."""
    told = member.mesh.gather_values(None if failed is None else str(failed))
    if failed is not None:
        raise failed
    for rank, text in enumerate(told):
        if text is not None:
            from gradrank.cluster.mesh import LostPeer

            raise LostPeer(f"{member.mesh.names[rank]}: {text}")


# ---------------------------------------------------------------------- features and labels
def _alike(member: Member, pieces: list[Piece]) -> list[Piece]:
    """Pieces with the same features in the same order, the same labels and the same kinds of columns."""
    facts: dict[str, dict[str, Any]] = {}
    for piece in pieces:
        data = piece.data
        fact = {
            "number": piece.number, "path": piece.path, "features": list(data.feature_names), "letor": piece.letor,
            "labels": list(data.labels), "query weights": data.weight is not None,
            "document weights": data.document_weight is not None, "docid": data.docid is not None,
        }  # fmt: skip
        facts.setdefault(repr([fact[key] for key in ("features", "labels", *_WEIGHTS, "docid")]), fact)
    everywhere = [fact for own in member.mesh.gather_values(list(facts.values())) for fact in own]
    if not everywhere:
        raise NoDocumentsError("none of the files holds a document")
    first = min(everywhere, key=lambda fact: fact["number"])
    names = tuple(first["features"])
    if all(fact["letor"] and _numbered(fact["features"]) for fact in everywhere):
        # LETOR text leaves out zeros, the last features of a file among them.
        names = default_feature_names(max(len(fact["features"]) for fact in everywhere))
    for fact in everywhere:
        other = f"{first['path']}, which belongs to the same data"
        lacking = sorted(set(names) ^ set(fact["features"])) if not fact["letor"] or not _numbered(names) else []
        if lacking:
            verb = "has not" if lacking[0] in names else "has"
            raise DataError(f"{verb} the feature {lacking[0]!r}, unlike {other}", path=fact["path"])
        if set(fact["labels"]) != set(first["labels"]):
            raise DataError(f"has the labels {', '.join(fact['labels']) or 'none'}, but {other}, has "
                            f"{', '.join(first['labels']) or 'none'}", path=fact["path"])  # fmt: skip
        for kind in _WEIGHTS:
            if fact[kind] != first[kind]:
                raise DataError(f"has {'' if fact[kind] else 'no '}{kind}, unlike {other}", path=fact["path"])
    docids = all(fact["docid"] for fact in everywhere)
    return [replace_data(piece, _aligned(piece.data, names, first["labels"], docids)) for piece in pieces]


def replace_data(piece: Piece, data: RankingData) -> Piece:
    """The piece with other data."""
    return Piece(piece.number, piece.path, data, piece.letor)


def _numbered(names: Sequence[str]) -> bool:
    return tuple(names) == default_feature_names(len(names))


def _aligned(data: RankingData, names: tuple[str, ...], labels: Sequence[str], docids: bool) -> RankingData:
    matrix: Any = data.X
    if data.n_features < len(names):
        matrix = np.zeros((data.n_docs, len(names)), dtype=data.X.dtype)
        matrix[:, : data.n_features] = data.X
    elif data.feature_names != names:
        place = {name: at for at, name in enumerate(data.feature_names)}
        matrix = np.ascontiguousarray(data.X[:, [place[name] for name in names]])
    ordered = {name: data.labels[name] for name in labels}
    return replace(data, X=matrix, feature_names=names, labels=ordered, docid=data.docid if docids else None)


# ---------------------------------------------------------------------- whole queries
def _whole_queries(member: Member, pieces: list[Piece], name: str, shuffle: bool) -> list[Piece]:
    """Pieces in which no query is cut in two."""
    keys = [query_keys(piece.data.qid) for piece in pieces]
    shared = _keys_in_several(member, keys)
    if not len(shared):
        return pieces
    if not shuffle:
        shared = shared[:_NAMED]
    marks = [np.isin(own, shared) for own in keys]
    holds = [
        [str(piece.data.qid[query]), piece.number, piece.path, member.rank]
        for piece, mark in zip(pieces, marks, strict=True)
        for query in np.flatnonzero(mark).tolist()
    ]
    places: dict[str, list[list[Any]]] = {}
    for qid, *where in (item for own in member.mesh.gather_values(holds) for item in own):
        places.setdefault(qid, []).append(where)
    # Ids of the same hash are told apart by the ids themselves.
    cut = {qid: sorted(found) for qid, found in places.items() if len(found) > 1}
    if not cut:
        return pieces
    if not shuffle:
        qid, found = min(cut.items(), key=lambda item: item[1])
        raise DataError(
            f"query {qid} of {name} stands in {found[0][1]} and in {found[1][1]}: documents of a query must be "
            "together; shuffle (--shuffle) brings them together"
        )
    return _brought_together(member, pieces, marks, {qid: found[0][2] for qid, found in cut.items()})


def _keys_in_several(member: Member, keys: Sequence[Any]) -> Any:
    """Keys of queries that come more than once; each process looks at some of all keys."""
    own = np.concatenate([*keys, np.empty(0, dtype=np.uint64)])
    size = member.mesh.size
    owner = (own % np.uint64(size)).astype(np.int64)
    received = member.mesh.exchange([own[owner == rank].tobytes() for rank in range(size)])
    mine = np.concatenate([np.frombuffer(part, dtype=np.uint64) for part in received])
    values, counts = np.unique(mine, return_counts=True)
    found = member.mesh.gather(values[counts > 1].tobytes())
    return np.sort(np.concatenate([np.frombuffer(part, dtype=np.uint64) for part in found]))


def _brought_together(
    member: Member, pieces: list[Piece], marks: Sequence[Any], target: Mapping[str, int]
) -> list[Piece]:
    """Send the parts of each query to the process that has its first file."""
    outgoing: list[list[dict[str, Any]]] = [[] for _ in range(member.mesh.size)]
    rest = []
    for piece, mark in zip(pieces, marks, strict=True):
        ranks = np.full(len(mark), -1)
        for query in np.flatnonzero(mark).tolist():
            ranks[query] = target.get(str(piece.data.qid[query]), -1)
        for rank in np.unique(ranks[ranks >= 0]).tolist():
            outgoing[rank].append({"number": piece.number, "data": pack(piece.data.take_queries(ranks == rank))})
        if (ranks < 0).any():
            rest.append(replace_data(piece, piece.data.take_queries(ranks < 0)))
    came = [item for own in member.mesh.exchange_values(outgoing) for item in own]
    parts = [unpack(item["data"]) for item in sorted(came, key=lambda item: int(item["number"]))]
    moved = joined(parts)
    if moved is not None:
        whole = _regrouped(moved)
        rest.append(Piece(min(int(item["number"]) for item in came), "", whole, False))
    return rest


def _regrouped(data: RankingData) -> RankingData:
    """Parts of queries as whole queries, the parts in their order."""
    ids = np.array(list(data.qid), dtype=object)
    rows = np.repeat(ids, data.sizes)
    weight = None
    if data.weight is not None:
        first: dict[str, float] = {}
        for qid, own in zip(ids.tolist(), data.weight.tolist(), strict=True):
            if first.setdefault(qid, own) != own:
                raise DataError(f"the weight of query {qid} is {own:g} in one file and {first[qid]:g} in another")
        weight = list(first.values())
    made = RankingData.from_arrays(
        data.X, dict(data.labels), qid=rows, docid=data.docid, weight=weight, document_weight=data.document_weight,
        feature_names=data.feature_names,
    )  # fmt: skip
    return replace(made, rows=None)


# ---------------------------------------------------------------------- processes without a query
def _nobody_empty(member: Member, own: RankingData | None, name: str) -> RankingData:
    """Let those who have most give half of their queries to those who have none; the model is the same anyway."""
    counts = member.mesh.gather_values(0 if own is None else own.n_queries)
    if sum(counts) < len(counts):
        raise ClusterError(
            f"{name} has {sum(counts)} queries for {len(counts)} workers: take at most {sum(counts)} workers"
        )
    while min(counts) == 0:
        giver, taker = int(np.argmax(counts)), counts.index(0)
        half = counts[giver] // 2
        parcel: list[Any] = [None] * len(counts)
        if member.rank == giver:
            assert own is not None
            parcel[taker] = pack(own.take_queries(np.arange(half)))
            own = own.take_queries(np.arange(half, own.n_queries))
        came = member.mesh.exchange_values(parcel)
        if member.rank == taker:
            own = unpack(came[giver])
        counts[giver], counts[taker] = counts[giver] - half, half
    assert own is not None
    return own
