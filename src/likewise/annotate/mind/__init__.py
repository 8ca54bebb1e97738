"""What thinks of questions: from facts and rows to what is known, and what to ask next."""

from likewise.annotate.mind.index import file_of_project
from likewise.annotate.mind.manner import Manner
from likewise.annotate.mind.mind import Mind, Place
from likewise.annotate.mind.proposals import Proposal, about_item
from likewise.annotate.mind.snapshot import Snapshot

__all__ = ["Manner", "Mind", "Place", "Proposal", "Snapshot", "about_item", "file_of_project"]
