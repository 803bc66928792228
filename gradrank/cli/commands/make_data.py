"""``gradrank make-data``: artificial data with a known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradrank.cli import options
from gradrank.cli.common import Notes, make_folder, write_part


def make_data(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write to; made if missing.")],
    queries: Annotated[
        int, typer.Option("--queries", min=1, help="Training and test queries each; half as many for validation.")
    ] = 10_000,
    docs: Annotated[int, typer.Option("--docs", min=1, help="Documents per query.")] = 50,
    docs_to: Annotated[
        int | None, typer.Option("--docs-to", min=1, help="If given, a query has between --docs and this many.")
    ] = None,
    features: Annotated[int, typer.Option("--features", min=3, help="Features.")] = 50,
    grades: Annotated[int, typer.Option("--grades", min=2, help="Grades of relevance.")] = 5,
    noise: Annotated[float, typer.Option("--noise", min=0, help="Judges' error, in deviations of relevance.")] = 0.0,
    clicks: Annotated[
        bool, typer.Option("--clicks", help="Write click labels too: *.clicks.txt, one number per line.")
    ] = False,
    click_agreement: Annotated[
        float | None,
        typer.Option("--click-agreement", min=0, max=1, help="Share of the pairs that clicks and grades order alike."),
    ] = None,
    second_graders: Annotated[
        float | None,
        typer.Option("--second-graders", min=0, help="Labels by other judges of this error too: *.second.txt."),
    ] = None,
    domain_shift: Annotated[
        float, typer.Option("--domain-shift", min=0, max=1, help="Share of relevance's terms that differ.")
    ] = 0.0,
    domain: Annotated[int, typer.Option("--domain", min=1, help="Number of the shifted domain.")] = 1,
    random_state: options.Seed = 0,
    n_jobs: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Make artificial data with a known truth: train.txt, vali.txt and test.txt."""
    notes = Notes(quiet)
    from gradrank.data.artificial import make_splits

    with notes.working("making data"):
        splits = make_splits(
            queries,
            n_docs=docs if docs_to is None else (docs, docs_to),
            n_features=features,
            random_state=random_state,
            grades=grades,
            noise=noise,
            clicks=clicks,
            click_agreement=click_agreement,
            second_graders=second_graders,
            domain_shift=domain_shift,
            domain=domain,
            n_jobs=n_jobs,
        )
    make_folder(folder)
    with notes.working(f"writing {folder}"):
        for name, data in splits.items():
            write_part(data, folder, name, ".txt")
