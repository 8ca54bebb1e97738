"""The server of the page: thin handlers over a desk, and who may call them."""

from likewise.annotate.server.access import Access, Invited, OnePerson, Visitor
from likewise.annotate.server.app import create_app
from likewise.annotate.server.serving import bind, running, serve

__all__ = ["Access", "Invited", "OnePerson", "Visitor", "bind", "create_app", "running", "serve"]
