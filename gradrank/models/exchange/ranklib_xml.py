"""Reading the XML of RankLib's ensembles: without entities, without recursion, each element where it belongs.

The parser refuses document types, where entities would be declared that grow without bound or read other files.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from gradrank.errors import ModelError

_INSIDE = {
    "": ("ensemble",),
    "ensemble": ("tree",),
    "tree": ("split",),
    "split": ("feature", "threshold", "split", "output"),
}


@dataclass
class XMLTree:
    """A tree as RankLib's file has it; children as gradrank numbers them: c ≥ 0 is split c, c < 0 is leaf ~c."""

    weight: float
    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)


@dataclass
class _Open:
    """A split element that is being read."""

    place: str
    feature: int | None = None
    threshold: float | None = None
    output: float | None = None
    node: int | None = None
    children: dict[str, int] = field(default_factory=dict)


def parse_ensemble(text: str) -> list[XMLTree]:
    """The trees of an ensemble; anything that is not one is a ModelError with its line.

    >>> stump = "<split pos='left'><output>1</output></split><split pos='right'><output>2</output></split>"
    >>> split = f"<split><feature>3</feature><threshold>0.5</threshold>{stump}</split>"
    >>> parse_ensemble(f"<ensemble><tree id='1' weight='0.1'>{split}</tree></ensemble>")[0].value
    [1.0, 2.0]
    """
    parser = expat.ParserCreate()
    reader = _Reader()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.buffer_text = True
    try:
        parser.Parse(text.strip().encode(), True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise ModelError(f"is not a whole RankLib ensemble: {reason} at line {error.lineno} of its XML") from None
    except ModelError as error:
        raise ModelError(f"{error} (line {parser.CurrentLineNumber} of its XML)") from None
    if not reader.trees:
        raise ModelError("is a RankLib ensemble without trees")
    return reader.trees


def _refuse_doctype(*_declared: Any) -> None:
    raise ModelError("declares a document type, which no RankLib model has")


class _Reader:
    """Elements as they come; open splits stand on a stack, so that deep trees need no recursion."""

    def __init__(self) -> None:
        self.trees: list[XMLTree] = []
        self.path: list[str] = [""]
        self.open: list[_Open] = []
        self.text = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self.path[-1]
        if name not in _INSIDE.get(parent, ()):
            raise ModelError(f"has an element <{name[:40]}> in <{parent}>, which no RankLib ensemble has")
        if self.text.strip():
            raise ModelError(f"has text in <{parent}> of a RankLib ensemble")
        self.text = ""
        self.path.append(name)
        if name == "tree":
            self.trees.append(XMLTree(_number(attributes.get("weight", "1"), "weight")))
        elif name == "split":
            self._start_split(parent, attributes.get("pos", ""))

    def _start_split(self, parent: str, place: str) -> None:
        tree = self.trees[-1]
        if parent == "tree":
            if tree.value:
                raise ModelError("has a RankLib tree with two roots")
            place = ""
        else:
            above = self.open[-1]
            if above.feature is None or above.threshold is None:
                raise ModelError("has a RankLib split without a feature or threshold before its children")
            if place not in ("left", "right") or place in above.children:
                raise ModelError(f"has a RankLib split at {place[:20]!r}, expected one left and one right")
            if above.node is None:
                # Numbered when its first child comes, so that parents stand before their children.
                above.node = len(tree.feature)
                tree.feature.append(above.feature)
                tree.threshold.append(above.threshold)
                tree.left.append(0)
                tree.right.append(0)
        self.open.append(_Open(place))

    def characters(self, text: str) -> None:
        self.text += text

    def end(self, name: str) -> None:
        self.path.pop()
        text, self.text = self.text, ""
        if name in ("feature", "threshold", "output"):
            split = self.open[-1]
            if getattr(split, name) is not None or split.children:
                raise ModelError(f"has a RankLib split with a second or late <{name}>")
            setattr(split, name, _whole(text, name) if name == "feature" else _number(text, name))
        elif text.strip():
            raise ModelError(f"has text in <{name}> of a RankLib ensemble")
        elif name == "split":
            self._end_split()
        elif name == "tree" and not self.trees[-1].value:
            raise ModelError("has a RankLib tree without a leaf")

    def _end_split(self) -> None:
        split = self.open.pop()
        tree = self.trees[-1]
        if split.output is not None:
            if split.feature is not None or split.threshold is not None or split.node is not None:
                raise ModelError("has a RankLib split with a test and an output")
            number = ~len(tree.value)
            tree.value.append(split.output)
        else:
            if split.node is None or set(split.children) != {"left", "right"}:
                raise ModelError("has a RankLib split that lacks a child or an output")
            number = split.node
            tree.left[number], tree.right[number] = split.children["left"], split.children["right"]
        if self.open:
            self.open[-1].children[split.place] = number


def _number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise ModelError(f"has the {what} {text.strip()[:40]!r}, expected a number")
    return value


def _whole(text: str, what: str) -> int:
    # RankLib's number fits 32 bits.
    if not text.strip().isdigit() or len(text.strip()) > 10:
        raise ModelError(f"has the {what} {text.strip()[:40]!r}, expected a whole number")
    return int(text)
