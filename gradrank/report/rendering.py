"""Templates to pages: escaping, the ways numbers are shown, and the one script that a page may run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from math import isnan
from typing import Any

from gradrank.errors import MissingExtraError
from gradrank.evaluation import Column
from gradrank.models.display.markup import as_page


def rendered(template: str, context: Mapping[str, Any]) -> str:
    """The page that a template makes; everything in the context is text, and stays text."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("jinja2", "report") from None
    templates = files("gradrank.report") / "templates"
    script = (templates / "sort.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("gradrank.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for kind in ("number", "signed", "percent", "p"):
        environment.filters[kind] = Column("", kind).show
    environment.filters["count_"] = "{:,}".format
    environment.filters["share"] = lambda value: "–" if isnan(value) else f"{value:.1%}"
    page = environment.get_template(template).render(
        context,
        style=(templates / "style.css").read_text(encoding="utf-8"),
        script=script,
        # The browser runs the one script whose hash this is, and nothing else whatever names contain.
        script_hash=b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii"),
    )
    return as_page(page)
