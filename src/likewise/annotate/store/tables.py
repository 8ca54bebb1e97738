"""The tables of a project, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    select,
)

from likewise.annotate.store.connections import one_at_a_time

SCHEMA = 1
"""The version of the tables. A store of another version is refused, never changed silently."""

metadata = MetaData()

about = Table(
    "likewise_about",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("value", Text, nullable=False),
)

facts = Table(
    "likewise_facts",
    metadata,
    # SQLite numbers rows by itself only where the type is INTEGER.
    Column(
        "sequence",
        BigInteger().with_variant(Integer, "sqlite"),
        primary_key=True,
        autoincrement=True,
    ),
    Column("id", String(100), nullable=False, unique=True),
    Column("kind", String(20), nullable=False),
    Column("who", String(200), nullable=False),
    Column("when", Double, nullable=False),
    Column("body", Text, nullable=False),
    Index("likewise_facts_of", "who", "sequence"),
    sqlite_autoincrement=True,
)

leases = Table(
    "likewise_leases",
    metadata,
    Column("question_id", String(100), primary_key=True),
    Column("who", String(200), nullable=False, index=True),
    Column("granted", Double, nullable=False),
    Column("expires", Double, nullable=False),
    Column("question", Text, nullable=False),
)

held = Table(
    "likewise_held",
    metadata,
    # The primary key is the promise: an item, or a pair, is held by one open question, never by
    # two. It is the SHA-256 of the key, or of both, since databases differ in how long, and what,
    # an indexed text may be.
    Column("item", String(64), primary_key=True),
    Column(
        "question_id",
        String(100),
        ForeignKey("likewise_leases.question_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("granted", Double, nullable=False, index=True),
    Column("expires", Double, nullable=False, index=True),
)

people = Table(
    "likewise_people",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("token", String(64), nullable=False, unique=True),  # SHA-256, in hexadecimal
    Column("admin", Boolean, nullable=False),
    Column("created", Double, nullable=False),
    Column("expires", Double, nullable=True),
    Column("revoked", Boolean, nullable=False),
)


def make_tables(connection: Connection, place: str) -> None:
    """Make those that are not there; refuse those of another version.

    Args:
        connection: in a transaction.
        place: where the database is, in words, for errors.
    """
    one_at_a_time(connection)  # two servers that start together would both make them
    metadata.create_all(connection)
    row = connection.execute(select(about.c.value).where(about.c.name == "schema")).first()
    if row is None:
        connection.execute(about.insert().values(name="schema", value=str(SCHEMA)))
    elif row.value != str(SCHEMA):
        raise ValueError(
            f"{place} has tables of version {row.value}, and this is version {SCHEMA}: use the "
            "version of Likewise that made it, export the answers there and import them here"
        )
