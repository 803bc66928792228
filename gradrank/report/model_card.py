"""The model card: what a reviewer asks of a model, as Markdown, as a page, or as plain values.

What it is, what it was trained on and for, how good it is and how sure that is, what it looks at, and how to make it
again. Everything comes from the file of the model; what the file does not tell is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradrank.evaluation.tables import Column, Table
from gradrank.models.display.curves import chosen_step, learning_curves, validation_first
from gradrank.models.ranker import Ranker, plain
from gradrank.report.figures import Section, line_style, new_figure, render_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_FEATURES = 20
_MOST_CURVES = 3


@dataclass(frozen=True, eq=False)
class ModelCard:
    """A model with the facts of its card.

    Parameters
    ----------
    ranker
        The model.
    path
        Its file.

    Examples
    --------
    >>> import tempfile
    >>> from gradrank.models.linear import LinearRanker
    >>> path = Path(tempfile.mkdtemp()) / "m.json"
    >>> ranker = LinearRanker([1.0, 3.0], feature_names=["age", "bm25"])
    >>> ranker.save(path)
    >>> "| bm25 | 0.7500 |" in ModelCard(ranker, path).to_markdown()
    True
    """

    ranker: Ranker
    path: Path

    # ------------------------------------------------------------------ facts
    def hashes(self) -> dict[str, str]:
        """Of the file, and of what decides the scores: the same for models of the same seed, whenever trained."""
        return {
            "file_sha256": hashlib.sha256(self.path.read_bytes()).hexdigest(),
            "scores_sha256": content_hash(self.ranker),
        }

    def importances(self) -> list[tuple[str, float]]:
        """Features and their shares, largest first; empty if no such share is known."""
        shares = self.ranker.importances()
        if shares is None or not shares.any():
            return []
        order = np.argsort(-shares, kind="stable")
        return [(self.ranker.feature_names[place], float(shares[place])) for place in order if shares[place] > 0]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "file": str(self.path),
            "kind": self.ranker.kind,
            **self.ranker.shape(),
            "features": self.ranker.n_features,
            "features_used": list(self.ranker.used_features()),
            **self.hashes(),
            "importances": dict(self.importances()),
            "training": self.ranker.training,
        }

    # ------------------------------------------------------------------ forms
    def to_markdown(self) -> str:
        """The card as Markdown."""
        lines = [f"# {self.path.name}", "", self.sentence(), ""]
        for section in self._sections():
            lines += [f"## {section.heading}", ""]
            lines += [section.caption, ""] if section.caption else []
            lines += [section.table.to_markdown()] if section.table is not None else []
        if self.ranker.training.get("command"):
            lines += ["## The command that repeats it", "", f"```sh\n{self.ranker.training['command']}\n```", ""]
        return "\n".join(lines)

    def to_html(self) -> str:
        """The card as a page that needs nothing else, with its learning curves drawn."""
        sections = self._sections()
        figure = _curves_figure(self.ranker.training)
        if figure is not None:
            place = next(n for n, section in enumerate(sections) if section.heading == "Learning curves")
            sections[place] = Section("Learning curves", sections[place].caption, figure, sections[place].table)
        command = self.ranker.training.get("command")
        if command:
            sections.append(Section("The command that repeats it", str(command)))
        return render_page(self.path.name, sections, [self.sentence()])

    def sentence(self) -> str:
        """What the model is, in one sentence."""
        training = self.ranker.training
        shape = ", ".join(f"{value:,} {name}" if isinstance(value, int) else f"{name} {value}"
                          for name, value in self.ranker.shape().items())  # fmt: skip
        told = f"A ranker of kind {self.ranker.kind}" + (f" ({shape})" if shape else "")
        told += f" over {self.ranker.n_features:,} features, of which it uses {len(self.ranker.used_features()):,}"
        if training.get("learner") or training.get("source"):
            told += f"; trained by {training.get('learner') or training.get('source')}"
        return told + (f" for {training['objective']}." if training.get("objective") else ".")

    # ------------------------------------------------------------------ sections
    def _sections(self) -> list[Section]:
        training = self.ranker.training
        sets = _mappings(training.get("sets"))
        found = [
            Section("Identity", "", table=_facts({"file": self.path.name, **_spelled(self.hashes())})),
            Section("Data", _data_caption(training), table=_data_table(sets)) if sets else None,
            Section(
                "Measures", "Means over queries with their 95 % intervals by Student's t.", table=_measure_table(sets)
            )
            if any(item.get("measures") for item in sets.values())
            else None,
            _curves_section(training),
            Section(
                "Importances",
                f"Shares of the {_MOST_FEATURES} most important features in what was learned.",
                table=Table((Column("feature"), Column("share", "number")), tuple(self.importances()[:_MOST_FEATURES])),
            )
            if self.importances()
            else None,
            Section("Training", "", table=_facts(_training_facts(training))) if _training_facts(training) else None,
            _group("Parameters", training.get("parameters")),
            _group("Versions", training.get("versions")),
        ]
        return [section for section in found if section is not None]


def content_hash(ranker: Ranker) -> str:
    """SHA-256 of what decides a ranker's scores: kind, features and numbers; times and machines have no part in it.

    >>> from gradrank.models.linear import LinearRanker
    >>> one, two = (LinearRanker([1.0], training={"seconds": seconds}) for seconds in (1, 2))
    >>> content_hash(one) == content_hash(two)
    True
    """
    value = {name: ranker.to_dict()[name] for name in ("kind", "feature_names", "payload")}
    # The facts of members of a sum are facts as well.
    text = json.dumps(_without_training(plain(value)), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _without_training(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_training(item) for name, item in value.items() if name != "training"}
    return [_without_training(item) for item in value] if isinstance(value, list) else value


def _spelled(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", " ").replace("sha256", "SHA-256"): value for name, value in facts.items()}


def _mappings(value: Any) -> dict[str, Mapping[str, Any]]:
    """The entries of a mapping that are mappings: files of strangers may hold anything."""
    if not isinstance(value, Mapping):
        return {}
    return {str(key): item for key, item in value.items() if isinstance(item, Mapping)}


def _facts(rows: Mapping[str, Any]) -> Table:
    return Table((Column("fact"), Column("value")), tuple((name, _told(value)) for name, value in rows.items()))


def _told(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _group(heading: str, value: Any) -> Section | None:
    if not isinstance(value, Mapping) or not value:
        return None
    rows = {str(name): item for name, item in value.items() if item is not None}
    return Section(heading, "", table=_facts(rows))


def _data_caption(training: Mapping[str, Any]) -> str:
    data = training.get("data")
    dtype = data.get("dtype") if isinstance(data, Mapping) else None
    return "Fingerprints are SHA-256 of features, queries and labels, whatever the file's format." + (
        f" Features are {dtype}." if dtype else ""
    )


def _data_table(sets: Mapping[str, Mapping[str, Any]]) -> Table:
    columns = [Column("set"), Column("file"), Column("queries", "count"), Column("documents", "count")]
    columns += [Column("labels (judged)"), Column("fingerprint")]
    rows = []
    for name, item in sets.items():
        labels = item.get("labels")
        sources = (
            ", ".join(f"{key} ({_told(count)})" for key, count in labels.items()) if isinstance(labels, Mapping) else ""
        )
        counts = [item.get(key) if isinstance(item.get(key), int) else None for key in ("queries", "documents")]
        rows.append((name, str(item.get("file", "")), *counts, sources, str(item.get("sha256", ""))))
    return Table(tuple(columns), tuple(rows))


def _measure_table(sets: Mapping[str, Mapping[str, Any]]) -> Table:
    columns = (Column("set"), Column("measure"), Column("mean", "number"), Column("low", "number"))
    rows = [
        (name, measure, *(_number(found.get(key)) for key in ("mean", "low", "high")), _number(found.get("queries")))
        for name, item in sets.items()
        for measure, found in _mappings(item.get("measures")).items()
    ]
    shown = [(*row[:5], None if row[5] is None else int(row[5])) for row in rows]
    return Table((*columns, Column("high", "number"), Column("queries", "count")), tuple(shown))


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        return None


def _training_facts(training: Mapping[str, Any]) -> dict[str, Any]:
    facts = {key: training[key] for key in ("source", "learner", "objective", "measure") if training.get(key)}
    if "best" in training and "grown" in training:
        facts["best step"] = f"{_told(training['best'])} of {_told(training['grown'])}"
    if training.get("interrupted"):
        facts["interrupted"] = "yes"
    if "seconds" in training:
        facts["seconds"] = training["seconds"]
    notes = training.get("notes")
    if isinstance(notes, list | tuple):
        facts |= {f"note {number}": note for number, note in enumerate(notes, 1)}
    return facts


def _curves_section(training: Mapping[str, Any]) -> Section | None:
    rows = []
    for measure, lines in learning_curves(training).items():
        for name, line in validation_first(lines):
            best = int(np.nanargmax(line))
            rows.append((measure, name, line[0], line[best], best + 1, line[-1], len(line)))
    if not rows:
        return None
    columns = (
        Column("measure"),
        Column("set"),
        Column("first", "number"),
        Column("best", "number"),
        Column("at step", "count"),
        Column("last", "number"),
        Column("steps", "count"),
    )
    return Section("Learning curves", "The measure after each step of the training.", table=Table(columns, tuple(rows)))


def _curves_figure(training: Mapping[str, Any]) -> Figure | None:
    curves = list(learning_curves(training).items())[:_MOST_CURVES]
    if not curves:
        return None
    figure, axes = new_figure(len(curves), width=5.0, height=3.2)
    for axis, (measure, lines) in zip(axes, curves, strict=True):
        for number, (name, line) in enumerate(validation_first(lines)):
            axis.plot(range(1, len(line) + 1), line, label=name, **line_style(number))
        best = chosen_step(training, max(map(len, lines.values())))
        if best is not None:
            axis.axvline(best, color="#55606e", linestyle=":", label=f"chosen: step {best:,}")
        axis.set_xlabel("step")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.set_title(measure)
        axis.legend(frameon=False)
    return figure
