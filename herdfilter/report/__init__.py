"""The report of a study: one HTML file that needs nothing else, neither network nor other files."""

from herdfilter.report.page import FILE_NAME, write_report

__all__ = ["FILE_NAME", "write_report"]
