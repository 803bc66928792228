"""Tutorials, run from top to bottom as a reader would, and what the docs build makes of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from gradrank.cli.main import app
from tests.support.scripts import ROOT, script

runner = script("docs/run_tutorials.py")
PAGES = runner.tutorials()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_runs_and_what_it_says_holds(page: Path, tmp_path: Path) -> None:
    done = runner.run(page, tmp_path)  # a block that fails, or a check that does not hold, raises
    code = [piece for piece in done if piece.kind in ("python", "sh")]
    assert len(code) >= 4
    assert any(piece.kind == "check" for piece in done)
    assert any(piece.output.text or piece.output.html for piece in code)

    text = runner.as_page(done, page.stem)
    assert "<!-- check" not in text
    assert f"({page.stem}.ipynb)" in text
    for piece in code:
        assert f"```{piece.kind}\n{piece.text}```" in text

    notebook = json.loads(runner.written(runner.as_notebook(done)))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) == len(code) + sum(piece.kind == "show" for piece in done)
    assert notebook["cells"][0]["source"][0].startswith("# ")
    python = [piece.text.strip() for piece in code if piece.kind == "python"]
    assert [text for cell in cells if (text := "".join(cell["source"])) in python] == python


def test_every_tutorial_is_in_the_navigation_and_on_the_list() -> None:
    assert len(PAGES) >= 14
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = (ROOT / "docs" / "tutorials" / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert f"tutorials/{page.name}\n" in navigation
        assert f"({page.name})" in listed


def test_every_command_has_a_worked_example(tmp_path: Path) -> None:
    page = ROOT / "docs" / "reference" / "command_examples.md"
    done = runner.run(page, tmp_path)
    sections = re.split(r"^## (.+)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    examples = dict(zip(sections[::2], sections[1::2], strict=True))
    assert set(examples) == set(commands(typer.main.get_command(app)))
    for name, text in examples.items():
        assert re.search(rf"^gradrank {name}\b", text, re.MULTILINE), name
    assert sum(piece.kind == "sh" for piece in done) >= len(examples) - 3  # three run until they are ended, or compile


def commands(group: Any, prefix: str = "") -> Iterator[str]:
    """Names of all commands, those of groups too."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix}{name} ")
        elif not command.hidden:
            yield f"{prefix}{name}"


def write(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_blocks_share_names_and_folder_and_show_their_last_value(tmp_path: Path) -> None:
    page = write(
        tmp_path,
        """# Page

```python
from pathlib import Path
Path("a.txt").write_text("made here")
number = 20
print("first")
number + 1
```

<!-- not run -->
```sh
rm -r everything
```

```sh
cat a.txt
gradrank measures NDCG
```

<!-- check
assert number == 20
-->
""",
    )
    folder = tmp_path / "work"
    folder.mkdir()
    done = runner.run(page, folder)
    assert [piece.kind for piece in done] == ["text", "python", "text", "sh", "text", "check"]
    assert done[1].output.text == "first\n21"
    assert done[3].output.text.startswith("made here")
    assert "gain" in done[3].output.text
    text = runner.as_page(done, "page")
    assert '<pre class="output prose">first\n21</pre>' in text
    assert "rm -r everything" in text
    notebook = runner.as_notebook(done)
    sources = ["".join(cell["source"]) for cell in notebook["cells"]]
    assert "!cat a.txt\n!gradrank measures NDCG" in sources
    assert not any(
        cell["cell_type"] == "code" and "everything" in "".join(cell["source"]) for cell in notebook["cells"]
    )


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("```python\n1 / 0\n```\n", ZeroDivisionError, "division"),
        ("```sh\ngradrank info nothing.txt\n```\n", RuntimeError, "no such file"),
        ("```sh\nfalse\n```\n", RuntimeError, "ends with 1"),
        ("```python\nx = 1\n```\n<!-- check\nassert x == 2, 'not so'\n-->\n", AssertionError, "not so"),
        ("<!-- check\nx = 1\n-->\n", SyntaxError, "asserts nothing"),
        ("<!-- show: nothing.html -->\n", FileNotFoundError, "nothing.html"),
    ],
)
def test_what_fails_stops_the_page(text: str, error: Any, message: str, tmp_path: Path) -> None:
    before = Path.cwd()
    with pytest.raises(error, match=message):
        runner.run(write(tmp_path, text), tmp_path)
    assert Path.cwd() == before


def test_a_page_may_be_about_an_exit_code(tmp_path: Path) -> None:
    page = write(tmp_path, '# Page\n\n```sh\ngradrank info nothing.txt || echo "exit code $?"\n```\n')
    (_, block) = runner.run(page, tmp_path)
    assert block.output.text.endswith("no such file\nexit code 2\n")


def test_figures_tables_and_files_are_shown(tmp_path: Path) -> None:
    page = write(
        tmp_path,
        """# Page

```python
import matplotlib.pyplot as plt
import pandas as pd
plt.plot([1, 2])
pd.DataFrame({"a": [1]})
```

```python
from pathlib import Path
print(Path("shown.html").write_text("<p>inside</p>"))
```

<!-- show: shown.html -->
""",
    )
    done = runner.run(page, tmp_path)
    assert len(done[1].output.figures) == 1
    text = runner.as_page(done, "page")
    assert re.search(r'<div class="output figure"><svg.*</svg>', text, re.DOTALL)
    assert "<table" in text
    assert 'src="page/shown.html"' in text
    assert done[-1].output.text == "<p>inside</p>"
    cells = runner.as_notebook(done)["cells"]
    assert {"image/svg+xml", "text/html"} <= {
        kind for cell in cells for out in cell.get("outputs", ()) for kind in out.get("data", ())
    }


def test_links_of_notebooks_lead_to_the_site_or_nowhere() -> None:
    text = "See [data](../guides/data.md#rows) and [Optuna](https://optuna.org)."
    assert runner.linked(text, "") == "See data and [Optuna](https://optuna.org)."
    assert (
        runner.linked(text, "https://x.org/")
        == "See [data](https://x.org/../guides/data.md#rows) and [Optuna](https://optuna.org)."
    )
