"""Where facts, leases and people are kept: one database a project, SQLite or PostgreSQL."""

try:
    import sqlalchemy  # noqa: F401
except ImportError as error:
    raise ImportError(
        "a project needs SQLAlchemy: pip install '.[annotate]' in the checkout"
    ) from error

from likewise.annotate.store.engines import NotSaved
from likewise.annotate.store.leases import Lease
from likewise.annotate.store.people import Person
from likewise.annotate.store.store import Since, Store

__all__ = ["Lease", "NotSaved", "Person", "Since", "Store"]
