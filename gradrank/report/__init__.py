"""One HTML file that shows which system ranks better, by how much, and how sure that is."""

from gradrank.report.headline import Headline, headline
from gradrank.report.page import render_report, write_report

__all__ = ["Headline", "headline", "render_report", "write_report"]
