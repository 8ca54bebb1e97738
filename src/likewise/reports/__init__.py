"""The report: one HTML file on a run or several, that asks for nothing from outside."""

from likewise.reports.opening import open_subject
from likewise.reports.page import page, write_report
from likewise.reports.subject import Sample, Subject

__all__ = ["Sample", "Subject", "open_subject", "page", "write_report"]
