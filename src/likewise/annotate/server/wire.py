"""What goes over the wire: the bodies of requests, checked before anything is done with them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

Kind = Literal["grid", "pair", "outliers"]

LONGEST_KEY = 4096
MOST_TILES = 500
MOST_ITEMS = 10_000


def _storable(text: str) -> str:
    """Text that every database can hold: no NUL, no half of a surrogate pair."""
    if "\x00" in text:
        raise ValueError("holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("is no text in UTF-8") from None
    return text


Key = Annotated[
    str, StringConstraints(min_length=1, max_length=LONGEST_KEY), AfterValidator(_storable)
]
"""The key of an item."""

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,100}$")]
"""A name that the page made up for a fact: the same name twice is one fact."""

Keys = Annotated[list[Key], Field(max_length=MOST_TILES)]

Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=100, strip_whitespace=True),
    AfterValidator(_storable),
]
"""What a class or a person is called."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class AskedTile(BaseModel):
    """A tile as the page got it; only its key counts."""

    key: Key
    image: str | None = Field(default=None, max_length=3 * LONGEST_KEY + 100)
    name: str | None = Field(default=None, max_length=1000)


class AskedQuestion(BaseModel):
    """A question as the page got it, for answers that come after its lease is forgotten."""

    id: Id
    kind: Kind
    exemplar: AskedTile | None = None
    tiles: list[AskedTile] = Field(min_length=1, max_length=MOST_TILES)
    text: str | None = Field(default=None, max_length=1000)
    expires: float | None = Field(default=None, allow_inf_nan=False)


class AnswerBody(_Body):
    """An answer to one question."""

    id: Id
    question_id: Id
    clicked: Keys = []
    unsure: Keys = []
    skipped: bool = False
    seconds: float = Field(default=0.0, ge=0, le=1e6, allow_inf_nan=False)
    question: AskedQuestion | None = None


class UndoBody(_Body):
    """Take a fact back."""

    id: Id
    fact: Id


class NameBody(_Body):
    """Name the class of an item."""

    id: Id
    item: Key
    name: Name


class MergeBody(_Body):
    """The classes of two items are one."""

    id: Id
    a: Key
    b: Key


class SplitBody(_Body):
    """Some items are not of the class of another."""

    id: Id
    from_: Key = Field(alias="from")
    items: Annotated[list[Key], Field(min_length=1, max_length=MOST_ITEMS)]


class InviteBody(_Body):
    """Invite a person."""

    name: Name
    admin: bool = False
    days: float = Field(default=30.0, gt=0, le=3650, allow_inf_nan=False)


class RevokeBody(_Body):
    """Take a person's invitation back."""

    name: Name


class Saved(BaseModel):
    """A fact is on the disk; `new` is False where it was there before."""

    saved: bool = True
    new: bool


class Tile(BaseModel):
    """One picture."""

    key: str
    image: str
    name: str | None = None


class QuestionReply(BaseModel):
    """A question for one person."""

    id: str
    kind: Kind
    text: str
    exemplar: Tile | None
    tiles: list[Tile]
    expires: float


class SessionReply(BaseModel):
    """Who one is, and where."""

    who: str
    admin: bool
    project: str
    csrf: str
    items: int
    target: float
    shared: bool


class ItemReply(BaseModel):
    """What is known of an item."""

    model_config = ConfigDict(populate_by_name=True)

    key: str
    image: str
    class_: int | str | None = Field(default=None, alias="class")
    name: str | None = None


class ErrorReply(BaseModel):
    """What went wrong, in words."""

    error: str


class Invitation(BaseModel):
    """A link that lets one person in; shown once."""

    link: str


Json = dict[str, Any]
