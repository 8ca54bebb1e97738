"""The desk: hands out questions and takes answers, for any number of people."""

from likewise.annotate.desk.desk import Asked, Desk
from likewise.annotate.desk.saying import UnknownQuestion

__all__ = ["Asked", "Desk", "UnknownQuestion"]
