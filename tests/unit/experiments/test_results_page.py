"""The page of results says what the kept results say."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradrank.errors import DataError
from gradrank.experiments import run
from gradrank.experiments.claims import Claim, overall
from gradrank.experiments.paper_numbers import PAPER_NUMBERS
from gradrank.experiments.results_page import kept_reasons, kept_results, results_page

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_made_from_the_kept_results() -> None:
    made = results_page(kept_results(DOCS / "results"), kept_reasons(DOCS / "results"))
    assert (DOCS / "results.md").read_text(encoding="utf-8") == made


def test_a_reason_is_given_for_each_finding_that_does_not_hold_and_for_no_other() -> None:
    claims = {
        result["name"]: [Claim.from_dict(claim) for claim in result["claims"]]
        for result in kept_results(DOCS / "results")
    }
    assert kept_reasons(DOCS / "results").keys() == {name for name, each in claims.items() if overall(each) != "holds"}


def test_kept_claims_tell_what_the_paper_states() -> None:
    kept = {result["name"]: result["claims"] for result in kept_results(DOCS / "results")}
    for name, claims in kept.items():
        stated = PAPER_NUMBERS.get(name, {})
        assert {claim["says"]: tuple(claim["paper"]) for claim in claims if claim["paper"]} == stated
    assert PAPER_NUMBERS.keys() <= kept.keys()
    row = next(line for line in (DOCS / "results.md").read_text(encoding="utf-8").splitlines() if "than McRank" in line)
    # Table 1 of Wu et al.
    assert "| 0.042 (0.879 − 0.837) |" in row


def test_shows_verdict_numbers_and_the_command(tmp_path: Path) -> None:
    result = run("svore-fig5", scale="tiny", out=tmp_path)
    page = results_page(kept_results(tmp_path))
    assert "Of 1 that were run: holds 1, undecided 0, does not hold 0." in page
    assert "`gradrank experiment run svore-fig5 --scale tiny`" in page
    for claim in result.claims:
        assert claim.says in page


def test_a_file_that_is_no_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "wu-1.json").write_text("{")
    with pytest.raises(DataError, match=r"wu-1\.json: is no JSON"):
        kept_results(tmp_path)
