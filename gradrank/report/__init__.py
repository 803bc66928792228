"""One HTML file that shows which system ranks better, by how much, and how sure that is."""

from gradrank.report.headline import Headline, headline
from gradrank.report.page import render_report, write_report
from gradrank.report.several import write_report_comparison

__all__ = ["Headline", "headline", "render_report", "write_report", "write_report_comparison"]
