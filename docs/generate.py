"""Pages made from the code each time the site is built: measures, conventions, command line, Python modules.

A hook of MkDocs; the pages exist only in the built site, so they cannot lag behind the registries. Tutorials are run,
their output is put under the code, and the same goes into notebooks.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import run_tutorials
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from gradrank.learners.algorithms import ALGORITHMS, algorithm
from gradrank.measures import CONVENTIONS, REGISTRY, Graded, Measure

# How the help of a parameter says what takes the place of None.
MEANT = re.compile(r"\bNone\b(?:, [^;]*?| or [^ ]+)? (?:is|takes) (.+?)(?:;|\.(?:\s|$))")
# Code within a line, and the names of options in it.
INLINE = re.compile(r"(?<=<code>)[^<\n]*-[^<\n]*(?=</code>)")
OPTION = re.compile(r"(?<!\S)--?[A-Za-z][\w-]*")
EXAMPLES = Path(__file__).parent / "reference" / "command_examples.md"
# Parameters that every measure has; shown once.
SHARED = ("ties", "empty", "unjudged", "precision")

ROOMS = {
    "data": "Data",
    "ranking": "Ranking",
    "measures": "Measures",
    "objectives": "Objectives",
    "models": "Models",
    "combine": "Combination",
    "learners": "Learners",
    "optimality": "Local optimality",
    "evaluation": "Evaluation",
    "selection": "Sweeps, portfolios and adaptation",
    "labeling": "Labeling",
    "experiments": "Experiments",
    "report": "Report",
    "serve": "Serving",
    "errors": "Errors",
    "runtime": "Kernels, threads, files",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for path, text in pages():
        files.append(File.generated(config, path, content=text))
    for page in run_tutorials.tutorials():
        done = followed(page, page.read_text(encoding="utf-8"))
        notebook = run_tutorials.written(run_tutorials.as_notebook(done))
        files.append(File.generated(config, f"tutorials/{page.stem}.ipynb", content=notebook))
        for piece in done:
            if piece.kind == "show":
                place = f"tutorials/{run_tutorials.shown_at(piece, page.stem)}"
                files.append(File.generated(config, place, content=piece.output.text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the output of a tutorial under its code."""
    source = Path(page.file.abs_src_path or "")
    if source not in run_tutorials.tutorials():
        return markdown
    return run_tutorials.as_page(followed(source, source.read_text(encoding="utf-8")), source.stem)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keep the names of options in one line: browsers may break them behind each hyphen."""
    return INLINE.sub(lambda code: OPTION.sub(r'<span class="option">\g<0></span>', code[0]), html)


@cache
def followed(page: Path, text: str) -> list[run_tutorials.Piece]:
    """A tutorial with its output; run again when its text has changed."""
    with tempfile.TemporaryDirectory() as folder:
        return run_tutorials.run(page, Path(folder))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the Python modules into the navigation, in the order of the rooms."""
    for part in config.nav or []:
        for title, children in part.items():
            if title == "Reference":
                children[-1] = {"Python": [{ROOMS[room]: f"reference/python/{room}.md"} for room in rooms()]}
    return config


def pages() -> Iterator[tuple[str, str]]:
    """Path and text of every generated page."""
    yield "reference/measures.md", measures_page()
    yield "reference/conventions.md", conventions_page()
    yield "reference/learners.md", learners_page()
    yield "reference/cli.md", command_line_page()
    for room in rooms():
        yield f"reference/python/{room}.md", python_page(room)


def rooms() -> list[str]:
    """The rooms that hold something."""
    return [room for room in ROOMS if modules(room)]


# ---------------------------------------------------------------------- learners
def learners_page() -> str:
    """Definition and parameters of every learner, from their declarations."""
    lines = [
        "# Learners",
        "",
        "Each learner with its parameters: for Python, for `gradrank train --algorithm NAME`, and for config files,",
        "whose keys are the options' names.",
    ]
    for name in ALGORITHMS:
        kind = algorithm(name)
        text = inspect.getdoc(kind) or ""
        lines += [
            "",
            f"## {kind.__name__}",
            "",
            f"`--algorithm {name}`",
            "",
            text.split("\nParameters\n---")[0].strip(),
        ]
        lines += ["", "| parameter | meaning | default | values |", "|---|---|---|---|"]
        for item in kind.declared.values():
            flags = item.option_names if item.command_line else ()
            names = "<br>".join(f"`{word}`" for word in (item.name, *flags))
            lines.append(f"| {names} | {escaped(item.help)} | {default_of(item)} | {values_of(item)} |")
    return "\n".join(lines) + "\n"


def default_of(item: Any) -> str:
    """A parameter's default, and what it means where that is not its value."""
    if item.default is not None:
        return f"`{item.default!r}`"
    if item.name == "n_estimators":
        return "[by the data](../guides/defaults.md)"
    meant = MEANT.search(item.help)
    return f"`None`: {meant[1]}" if meant else "`None`"


def values_of(item: Any) -> str:
    """What a parameter may be, and where `gradrank tune` looks."""
    kinds = ", ".join(f"`{kind}`" for kind in str(item.annotation).split(" | "))
    values = kinds if item.kind == "free" else escaped(item.expected)
    return values if item.search is None else f"{values}<br>searched {escaped(str(item.search))}"


# ---------------------------------------------------------------------- measures
def measures_page() -> str:
    """Definition and parameters of every measure."""
    lines = [
        "# Measures",
        "",
        "A measure is written `NAME(parameter=value, …)@k`; everything in brackets may be left out, and `@k` where the",
        "measure takes a cut-off. A parameter that is not given comes from the [convention](conventions.md), which is",
        "`gradrank` unless `convention=` says otherwise; `label=` names the label source.",
        "",
        "## Parameters of every measure",
        "",
        *parameter_table(Measure, SHARED),
    ]
    for kind in REGISTRY.values():
        also = f" (also {', '.join(f'`{alias}`' for alias in kind.aliases)})" if kind.aliases else ""
        spelling = f"`{kind.name}`, `{kind.name}@k`" if kind.takes_cutoff else f"`{kind.name}`"
        own = [name for name in kind.parameters() if name not in SHARED]
        lines += ["", f"## {kind.name}", "", f"{spelling}{also}", "", definition(kind)]
        if kind.default_source is not None:
            lines += ["", f"Reads the label source `{kind.default_source}` unless `label=` names another."]
        if own:
            lines += ["", *parameter_table(kind, own)]
    lines += ["", "## Graded", "", "`Graded(MEASURE, MEASURE, …, tolerance=x)`", "", definition(Graded)]
    return "\n".join(lines) + "\n"


def definition(kind: type) -> str:
    """A docstring without its parameters and examples, lines that go together joined."""
    text = (kind.__doc__ or "").split(">>>")[0].split("    Parameters\n    ------")[0]
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return escaped("\n\n".join(part for part in paragraphs if part))


def parameter_table(kind: type[Measure], names: Any) -> list[str]:
    """What some parameters of a measure mean."""
    rows = ["| parameter | values | default | meaning |", "|---|---|---|---|"]
    for name in names:
        spec = kind.parameters()[name]
        measure = getattr(kind, "name", "NDCG")
        default = shown(CONVENTIONS["gradrank"].value(measure, name, spec.default))
        rows.append(f"| `{name}` | {escaped(spec.expected)} | `{default}` | {escaped(spec.doc)} |")
    return rows


def conventions_page() -> str:
    """Every measure × convention: the parameters as they are resolved."""
    tools = list(CONVENTIONS.values())
    lines = [
        "# Conventions",
        "",
        "Tools that compute “the same” measure differ in gain, discount, tied scores, queries without a relevant",
        "document and more. A convention sets all of that at once, so that the numbers of a tool can be reproduced:",
        "`NDCG(convention=letor4)@10`, `MAP(convention=trec_eval)`. A single parameter may still be given beside it.",
        "",
        "| convention | meaning | measures |",
        "|---|---|---|",
    ]
    lines += [f"| `{tool.name}` | {escaped(tool.summary)} | {', '.join(tool.measures or ('all',))} |" for tool in tools]
    lines += ["", "## Every measure in every convention", "", "An empty cell: the tool does not have the measure.", ""]
    for kind in REGISTRY.values():
        lines += [
            f"### {kind.name}",
            "",
            "| parameter | " + " | ".join(tool.name for tool in tools) + " |",
            "|---|" + "---|" * len(tools),
        ]
        for name in kind.parameters():
            cells = [
                f"`{shown(getattr(kind(convention=tool.name), name))}`" if tool.defines(kind.name) else ""
                for tool in tools
            ]
            lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------- command line
def command_line_page() -> str:
    """Every command with its arguments and options, from the help texts."""
    import typer

    from gradrank.cli.main import app

    group: Any = typer.main.get_command(app)
    lines = [
        "# Command line",
        "",
        "Results go to standard output, notes and errors to standard error. Exit codes: 0 done, 2 wrong input or usage",
        "(one line says what and where), 130 interrupted, 141 the reader of the output has gone.",
        "",
        "| command | |",
        "|---|---|",
    ]
    commands = list(all_commands(group))
    examples = worked_examples()
    lines += [f"| [`{name}`](#{name.replace(' ', '-')}) | {summary(command)} |" for name, command in commands]
    for name, command in commands:
        lines += ["", f"## {name}", "", escaped(command.help or ""), "", *usage(name, command)]
        lines += ["", "**Example**", "", examples[name]]
    return "\n".join(lines) + "\n"


def worked_examples() -> dict[str, str]:
    """By command what stands in its section of the examples, which are run with the tutorials."""
    done = followed(EXAMPLES, EXAMPLES.read_text(encoding="utf-8"))
    text = "".join(run_tutorials.page_part(piece, EXAMPLES.stem) for piece in done)
    sections = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return {name: body.strip() for name, body in zip(sections[::2], sections[1::2], strict=True)}


def all_commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Name and command, those of groups of commands included; hidden ones are left out."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from all_commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def summary(command: Any) -> str:
    """The first line of a command's help."""
    return escaped((command.help or "").strip().split("\n")[0])


def usage(name: str, command: Any) -> list[str]:
    """A command's call and a table of its arguments and options."""
    context = command.make_context(name, [], resilient_parsing=True)
    arguments = [item.metavar for item in command.params if item.param_type_name == "argument"]
    lines = ["```text", " ".join(["gradrank", name, "[OPTIONS]", *arguments]), "```", ""]
    lines += ["| argument or option | meaning |", "|---|---|"]
    records = [item.get_help_record(context) for item in command.params]
    lines += [f"| <code>{escaped(call)}</code> | {escaped(help)} |" for call, help in filter(None, records)]
    return lines


# ---------------------------------------------------------------------- Python
def modules(room: str) -> list[str]:
    """The public modules of a room that hold a public name of their own; modules of kernels are left out."""
    try:
        module = import_module(f"gradrank.{room}")
    except ModuleNotFoundError:
        return []
    if not hasattr(module, "__path__"):
        return [module.__name__]
    names = [f"{module.__name__}.{item.name}" for item in pkgutil.iter_modules(module.__path__)]
    return [name for name in names if not name.rpartition(".")[2].startswith("_") and not name.endswith("_kernel")]


def python_page(room: str) -> str:
    """The reference of one room."""
    doc = (import_module(f"gradrank.{room}").__doc__ or "").strip().split("\n\n")[0]
    lines = [f"# {ROOMS[room]}", "", doc]
    names = modules(room)
    for name in names:
        lines += ["", f"::: {name}"]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------- text
def shown(value: Any) -> str:
    """A value as it is written in a measure's name, exactly."""
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def escaped(text: str) -> str:
    """Text that means itself in a Markdown table and in HTML."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
