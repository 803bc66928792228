"""Write docs/third-party.md: the packages that gradrank needs and their licences, from what is installed.

Run: python docs/make_notices.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

TARGET = Path(__file__).parent / "third-party.md"
_OWN = "gradrank"
_CLASSIFIER = re.compile(r"License :: (?:OSI Approved :: )?(.+)")
# What torch brings along for graphics cards depends on where its wheel comes from.
_FOR_GRAPHICS_CARDS = re.compile(r"(nvidia|cuda|triton)\b.*")
_LONGEST = 60
HEAD = """# Third-party licences

gradrank itself is under the Apache License 2.0. These are the packages that `pip install 'gradrank[all]'` brings
along, with the licences that they name; those without an extra come with every installation. Made from the packages'
own metadata by `make notices`. The licences' texts are in the packages.

| package | for | licence |
|---|---|---|
"""


def canonical(name: str) -> str:
    """A package's name in its one spelling.

    >>> canonical("Pytrec_eval.Terrier")
    'pytrec-eval-terrier'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(extra: str | None, find: Callable[[str], Distribution] = distribution) -> dict[str, Distribution]:
    """All packages that an extra of gradrank needs, those that these need included; None is for no extra.

    Packages that are not installed here are not needed here: they are for other systems.
    """
    found: dict[str, Distribution] = {}
    waiting = [(_OWN, frozenset({extra or ""}))]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        try:
            package = find(name)
        except PackageNotFoundError:
            continue
        if name != _OWN:
            found[name] = package
        for line in package.requires or ():
            need = Requirement(line)
            if need.marker is None or any(need.marker.evaluate({"extra": word}) for word in extras | {""}):
                step = (canonical(need.name), frozenset(need.extras))
                if step not in seen:
                    seen.add(step)
                    waiting.append(step)
    return found


def licence(package: Distribution) -> str:
    """The licence that a package names: an SPDX expression, else its classifiers, else its first line of text."""
    expression = package.metadata.get("License-Expression")
    if expression:
        return str(expression)
    matches = map(_CLASSIFIER.fullmatch, package.metadata.get_all("Classifier") or ())
    named = [match[1] for match in matches if match]
    if named:
        return ", ".join(named)
    text = (package.metadata.get("License") or "").strip().split("\n")[0]
    return text if 0 < len(text) <= _LONGEST else "see the package"


def page(extras: Iterable[str], find: Callable[[str], Distribution] = distribution) -> str:
    """The page, sorted by name."""
    base = needed(None, find)
    users: dict[str, list[str]] = {name: [] for name in base}
    packages = dict(base)
    for extra in extras:
        for name, package in needed(extra, find).items():
            packages[name] = package
            if name not in base:
                users.setdefault(name, []).append(extra)
    rows = [
        f"| {name} | {', '.join(f'`{extra}`' for extra in users[name])} | {licence(packages[name])} |\n"
        for name in sorted(packages)
        if not _FOR_GRAPHICS_CARDS.fullmatch(name)
    ]
    return HEAD + "".join(rows)


def runtime_extras(find: Callable[[str], Distribution] = distribution) -> list[str]:
    """The extras that ``all`` holds."""
    for line in find(_OWN).requires or ():
        need = Requirement(line)
        if need.name == _OWN and need.marker is not None and need.marker.evaluate({"extra": "all"}):
            return sorted(need.extras)
    raise LookupError("the extra 'all' is not declared")


if __name__ == "__main__":
    TARGET.write_text(page(runtime_extras()), encoding="utf-8")
