"""What a service is told at its start: models, limits, policies, shares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import isclose, isfinite
from pathlib import Path

from gradrank.errors import DataError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class MissingFeatures(StrEnum):
    """What becomes of a document that lacks a feature of the model."""

    error = "error"
    missing = "missing"


class UnknownFeatures(StrEnum):
    """What becomes of a feature that the model does not know."""

    error = "error"
    ignore = "ignore"


@dataclass(frozen=True)
class ModelSource:
    """A model's name, version and file.

    >>> ModelSource.parse("new@2=models/new.json")
    ModelSource(name='new', version='2', path=PosixPath('models/new.json'))
    >>> ModelSource.parse("models/old.json").label
    'old@1'
    """

    name: str
    version: str
    path: Path

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}"

    @classmethod
    def parse(cls, text: str) -> ModelSource:
        """From ``PATH``, ``NAME=PATH`` or ``NAME@VERSION=PATH``; a bare path is named after its file."""
        named, equals, file = text.partition("=")
        if not equals or Path(text).exists():
            named, file = re.sub(r"[^A-Za-z0-9._-]", "-", Path(text).name.split(".")[0]), text
        name, at, version = named.partition("@")
        version = version if at else "1"
        if not file or not _NAME.fullmatch(name) or not _NAME.fullmatch(version):
            raise DataError(
                f"model {text!r} is not named as expected: NAME=FILE or NAME@VERSION=FILE, with names of up to 64 "
                "letters, digits, dots, hyphens and underscores"
            )
        return cls(name, version, Path(file))


def parse_sources(texts: Sequence[str]) -> tuple[ModelSource, ...]:
    """All models of a command line; two of one name and version are an error.

    >>> [source.label for source in parse_sources(["a=x.json", "a@2=y.json"])]
    ['a@1', 'a@2']
    """
    sources = tuple(map(ModelSource.parse, texts))
    seen: set[str] = set()
    for source in sources:
        if source.label in seen:
            raise DataError(f"model {source.label} is given twice; tell them apart with NAME@VERSION=FILE")
        seen.add(source.label)
    return sources


def parse_shares(text: str) -> dict[str, float]:
    """Shares of traffic by model, adding up to 1.

    >>> parse_shares("old=0.9,new=0.1")
    {'old': 0.9, 'new': 0.1}
    """
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = part.strip().partition("=")
        try:
            share = float(number)
        except ValueError:
            share = float("nan")
        if not name or not equals or name in shares or not (isfinite(share) and share >= 0.0):
            raise DataError(f"shares are {text!r}, expected NAME=SHARE,NAME=SHARE, such as old=0.9,new=0.1")
        shares[name] = share
    if not isclose(sum(shares.values()), 1.0, abs_tol=1e-6):
        raise DataError(f"shares {text!r} add up to {sum(shares.values()):g}, expected 1")
    return shares


@dataclass(frozen=True)
class Limits:
    """How much a request may ask for, and how many at once."""

    documents: int = 10_000
    """Documents of a request."""
    bytes: int = 8 << 20
    """Bytes of a request's body."""
    seconds: float = 10.0
    """Seconds from a request's first byte to its answer."""
    at_once: int = 64
    """Requests that are worked for at once, and bodies of more than 64 KiB that are held in memory; others wait."""
    waiting: int = 4096
    """Requests beyond these that may wait, for their bodies to arrive or for a place; more are turned away."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (isfinite(value) and value > 0):
                raise DataError(f"the limit of {name.replace('_', ' ')} is {value}, expected a number above 0")


@dataclass(frozen=True)
class Settings:
    """Everything that decides how requests are answered."""

    sources: tuple[ModelSource, ...]
    limits: Limits = field(default_factory=Limits)
    missing_features: MissingFeatures = MissingFeatures.error
    unknown_features: UnknownFeatures = UnknownFeatures.ignore
    shares: dict[str, float] = field(default_factory=dict)
    """Share of each model in the requests that name none; empty = the first model gets all."""
    interleave: tuple[str, str] | None = None
    """Two models that share every list of requests that name none."""
    salt: str = "gradrank"
    """Part of the hash that users are assigned by; another one deals users anew."""

    def __post_init__(self) -> None:
        if not self.sources:
            raise DataError("there is no model to serve")
        if self.shares and self.interleave:
            raise DataError("shares and interleaving are given both; a request cannot follow both")
        if self.interleave and self.interleave[0] == self.interleave[1]:
            raise DataError(f"{self.interleave[0]!r} cannot be interleaved with itself")
        known = {source.label for source in self.sources} | {source.name for source in self.sources}
        for name in [*self.shares, *(self.interleave or ())]:
            if name not in known:
                raise DataError(f"there is no model {name!r}, expected one of {', '.join(sorted(known))}")
