"""Answers in and out of a project, in files of three formats."""

from likewise.annotate.exchange.files import export_answers, format_of, import_answers
from likewise.annotate.exchange.lines import read_lines

__all__ = ["export_answers", "format_of", "import_answers", "read_lines"]
