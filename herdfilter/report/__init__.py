"""The report of a study: one HTML file that needs neither network nor other files."""

from herdfilter.report.page import REPORT_FILE, write_report

__all__ = ["REPORT_FILE", "write_report"]
