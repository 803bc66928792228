"""Tutorials: one source each, run by the docs build, by the tests, and given away as notebooks.

A tutorial is a page in docs/tutorials/. All its ``python`` and ``sh`` blocks run, in order, with the same names and in
the same folder, except below ``<!-- not run -->``. Other comments that mean something:

``<!-- check`` … ``-->``
    Python that must hold at this place, seen by nobody: what the text says about the output above.
``<!-- show: report.html -->``
    The page shows this file, which a block has written.

Run one by hand, with its output: python docs/run_tutorials.py docs/tutorials/which-ndcg.md
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).parent / "tutorials"
_PIECES = re.compile(
    r"(?P<quiet>^<!-- not run -->\n)?^```(?P<kind>python|sh)\n(?P<code>.*?)^```$"
    r"|^<!-- check\n(?P<check>.*?)^-->$"
    r"|^<!-- show: (?P<show>\S+) -->$",
    re.MULTILINE | re.DOTALL,
)
# The one way in which a command may fail: the page is about its exit code.
TELLS_STATUS = ' || echo "exit code $?"'
# Lines of HTML that lay a page out; a notebook has no use for them.
_LAYOUT = re.compile(r"^</?div.*>\n", re.MULTILINE)
_GAP = re.compile(r"\n\s*\n")
_LINK = re.compile(r"\]\((?!https?:)([^)#]+?)(#[^)]*)?\)")


@dataclass
class Output:
    """What a block has printed and drawn, and the value of its last line."""

    text: str = ""
    html: str = ""
    figures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Piece:
    """A part of a page: text, code that runs (python, sh), a check, or a file to be shown."""

    kind: str
    text: str
    output: Output = field(default_factory=Output)


def tutorials() -> list[Path]:
    """The pages that run."""
    return sorted(page for page in TUTORIALS.glob("*.md") if page.stem != "index")


def pieces(text: str) -> Iterator[Piece]:
    """A page cut into its parts, in order."""
    end = 0
    for found in _PIECES.finditer(text):
        if found["quiet"]:
            continue  # stays text
        if found.start() > end:
            yield Piece("text", text[end : found.start()])
        end = found.end()
        kind = found["kind"] or ("check" if found["show"] is None else "show")
        yield Piece(kind, found["code"] or found["check"] or found["show"])
    if text[end:].strip():
        yield Piece("text", text[end:])


# ---------------------------------------------------------------------- running
def run(page: Path, folder: Path) -> list[Piece]:
    """Run a tutorial in a folder; its parts with what they gave."""
    done = list(pieces(page.read_text(encoding="utf-8")))
    names: dict[str, Any] = {"__name__": "__main__"}
    with surroundings(folder):
        try:
            for number, piece in enumerate(done):
                where = f"{page.name}, part {number}"
                if piece.kind == "python":
                    run_python(piece, names, where)
                elif piece.kind == "sh":
                    run_shell(piece, where)
                elif piece.kind == "check":
                    run_check(piece, names, where)
                elif piece.kind == "show":
                    piece.output.text = Path(piece.text).read_text(encoding="utf-8")
        finally:
            for thing in names.values():
                if isinstance(thing, subprocess.Popen):
                    thing.kill()
                    thing.wait()
                    for pipe in filter(None, (thing.stdout, thing.stderr, thing.stdin)):
                        pipe.close()
    return done


@contextlib.contextmanager
def surroundings(folder: Path) -> Iterator[None]:
    """A folder to work in, the commands of this interpreter on the path, figures without a screen."""
    kept, before = dict(os.environ), Path.cwd()
    scripts, root = Path(sys.executable).parent, Path(__file__).parents[1]
    os.environ |= {
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH")))),
        "COLUMNS": "100",
        "MPLBACKEND": "agg",
        "OMP_WAIT_POLICY": "passive",
    }
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(kept)


def run_python(piece: Piece, names: dict[str, Any], where: str) -> None:
    """Run a block as a notebook does: the value of its last line is shown, and figures that are open."""
    tree = ast.parse(piece.text, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), where, "eval"), names)
    text = printed.getvalue()
    if value is not None:
        shown = getattr(value, "_repr_html_", None)
        piece.output.html = (shown() or "") if shown else ""
        text += repr(value)
    piece.output.text = text
    pyplot = sys.modules.get("matplotlib.pyplot")
    for number in pyplot.get_fignums() if pyplot else ():
        drawn = io.StringIO()
        pyplot.figure(number).savefig(drawn, format="svg", bbox_inches="tight")
        piece.output.figures.append(drawn.getvalue().partition("<svg")[1] + drawn.getvalue().partition("<svg")[2])
    if pyplot:
        pyplot.close("all")


def run_check(piece: Piece, names: dict[str, Any], where: str) -> None:
    """What the page says must be so."""
    tree = ast.parse(piece.text, where)
    if not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
        raise SyntaxError(f"{where}: this check asserts nothing")
    exec(compile(tree, where, "exec"), names)


def commands(text: str) -> list[str]:
    """The commands of a shell block, each on one line."""
    return [line for line in text.replace("\\\n", "").splitlines() if line.strip() and not line.startswith("#")]


def run_shell(piece: Piece, where: str) -> None:
    """Run a shell block; commands of gradrank in this process, which saves their start."""
    import shlex

    from typer.testing import CliRunner

    from gradrank.cli.main import app

    for whole in commands(piece.text):
        line = whole.removesuffix(TELLS_STATUS)
        if line.startswith("gradrank ") and not re.search(r"[|><&;$]", re.sub(r"'[^']*'|\"[^\"]*\"", "", line)):
            result = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
            output, status = result.output, result.exit_code
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
        else:
            done = subprocess.run(line, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            output, status = done.stdout, done.returncode
        piece.output.text += output
        if status != 0 and line != whole:
            piece.output.text += f"exit code {status}\n"
        elif status != 0:
            raise RuntimeError(f"{where}: {line}\nends with {status}:\n{output}")


# ---------------------------------------------------------------------- pages
def as_page(done: list[Piece], name: str) -> str:
    """The page with the output under each block."""
    text = "".join(page_part(piece, name) for piece in done)
    heading, _, rest = text.partition("\n")
    note = (
        f'\n\n<p class="run" markdown>Run when this page was made; what is shown below the code is its output. '
        f"[The same as a notebook]({name}.ipynb){{ download }}</p>\n"
    )
    return heading + note + rest


def page_part(piece: Piece, name: str) -> str:
    """A part as Markdown."""
    if piece.kind == "text":
        return piece.text
    if piece.kind == "check":
        return ""
    if piece.kind == "show":
        place = shown_at(piece, name)
        frame = f'<iframe class="shown" src="{place}" title="{piece.text}" loading="lazy"></iframe>'
        return f"{frame}\n\n[{piece.text} on a page of its own]({place})"
    return f"```{piece.kind}\n{piece.text}```\n" + shown_output(piece.output)


def shown_at(piece: Piece, name: str) -> str:
    """Where a file that a tutorial shows lies, from the tutorial's folder."""
    return f"{name}/{piece.text}"


def shown_output(output: Output) -> str:
    """Output as HTML."""
    parts = []
    if output.html:
        printed = output.text[: output.text.rfind("\n", 0, -1) + 1] if output.text.count("\n") else ""
        parts += [preformatted(printed)] if printed.strip() and "<table" not in output.html else []
        # Without empty lines, which would end the HTML.
        parts.append('<div class="output rich">' + _GAP.sub("\n", output.html).strip() + "</div>")
    elif output.text.strip():
        parts.append(preformatted(output.text))
    parts += ['<div class="output figure">' + _GAP.sub("\n", figure) + "</div>" for figure in output.figures]
    return "".join(f"\n{part}\n" for part in parts)


def preformatted(text: str) -> str:
    """Printed text."""
    lines = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
    table = re.search(r"\S {3}|[─│]", lines)  # its columns must stay below each other
    return f'<pre class="output{"" if table else " prose"}">{html.escape(lines, quote=False)}</pre>'


# ---------------------------------------------------------------------- notebooks
def as_notebook(done: list[Piece], site: str = "") -> dict[str, Any]:
    """The tutorial as a notebook of nbformat 4.5; links to other pages lose their address unless there is one."""
    cells: list[dict[str, Any]] = []
    for piece in done:
        name = f"part-{len(cells)}"
        if piece.kind == "text":
            text = _LAYOUT.sub("", piece.text).strip()
            if text:
                cells.append({"cell_type": "markdown", "id": name, "metadata": {}, "source": lines(linked(text, site))})
        elif piece.kind != "check":
            outputs = notebook_outputs(piece.output) if piece.kind != "show" else []
            cells.append(
                {
                    "cell_type": "code",
                    "id": name,
                    "metadata": {},
                    "execution_count": None,
                    "source": lines(cell_code(piece)),
                    "outputs": outputs,
                }
            )
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def cell_code(piece: Piece) -> str:
    """A block as the code of a notebook's cell."""
    if piece.kind == "sh":
        return "\n".join("!" + line for line in commands(piece.text))
    if piece.kind == "show":
        return f'from IPython.display import IFrame\n\nIFrame("{piece.text}", "100%", 600)'
    return piece.text.rstrip()


def notebook_outputs(output: Output) -> list[dict[str, Any]]:
    """Output as a notebook keeps it."""
    found: list[dict[str, Any]] = []
    if output.html:
        data = {"text/html": lines(output.html), "text/plain": lines(output.text)}
        found.append({"output_type": "display_data", "data": data, "metadata": {}})
    elif output.text.strip():
        found.append({"output_type": "stream", "name": "stdout", "text": lines(output.text)})
    for figure in output.figures:
        data = {"image/svg+xml": lines(figure), "text/plain": ["figure"]}
        found.append({"output_type": "display_data", "data": data, "metadata": {}})
    return found


def lines(text: str) -> list[str]:
    """Text as notebooks hold it."""
    return text.splitlines(keepends=True)


def linked(text: str, site: str) -> str:
    """Text whose links to pages lead to the site, or nowhere."""
    return re.sub(r"\[([^\]]+)" + _LINK.pattern, (rf"[\1]({site}\2\3)" if site else r"\1"), text)


def written(notebook: dict[str, Any]) -> str:
    """A notebook as the text of its file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for given in sys.argv[1:] or tutorials():
        with tempfile.TemporaryDirectory() as made:
            sys.stdout.write(as_page(run(Path(given).resolve(), Path(made)), Path(given).stem) + "\n")
