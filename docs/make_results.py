"""Make docs/results.md from the kept results in docs/results.

Run: python docs/make_results.py
"""

from __future__ import annotations

from pathlib import Path

from gradrank.experiments.results_page import kept_reasons, kept_results, results_page

HERE = Path(__file__).parent

if __name__ == "__main__":
    page = results_page(kept_results(HERE / "results"), kept_reasons(HERE / "results"))
    (HERE / "results.md").write_text(page, encoding="utf-8")
