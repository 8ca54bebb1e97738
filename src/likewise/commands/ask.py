"""``likewise ask``: a page that asks "same kind as this?", until enough is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from likewise.commands.errors import UsageError, needs

if TYPE_CHECKING:
    from rich.console import Console

    from likewise.annotate import Store
    from likewise.annotate.server import Access


def ask(
    data: str,
    *,
    run: Path | None = None,
    embeddings: Path | None = None,
    encoder: str | None = None,
    pretrained: str | None = None,
    project: str | None = None,
    host: str | None = None,
    port: int = 8765,
    share: bool = False,
    address: str | None = None,
    certificate: Path | None = None,
    certificate_key: Path | None = None,
    retrain: bool = False,
    retrain_every: int = 20,
    retrain_epochs: int = 5,
    no_browser: bool = False,
    sampler: str = "default",
    grid: int = 15,
    target: float = 0.95,
    image_column: str | None = None,
    label_column: str | None = None,
    image_size: int | None = None,
    batch_size: int = 512,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    seed: int = 0,
) -> int:
    """Ask people who is alike, on a page in the browser, and keep what they say.

    The page shows one item and fifteen others: click those of the same kind. Answers are kept in
    one file (or database), and `likewise train --answers` uses them. Without a run, a file of
    embeddings or an encoder, questions begin with plain pixels. Ctrl-C ends it; nothing is lost.

    Args:
        data: a folder of images, Parquet files, an array file, a saved Hugging Face dataset,
            "digits", or "fashion-mnist".
        run: a folder that `likewise train` wrote: its encoder says what may be alike.
        embeddings: a file that `likewise embed` wrote, in place of a run.
        encoder: a model of timm, or "tiny", in place of both: untrained, or --pretrained.
        pretrained: its weights: "timm" for the model's own, or a file.
        project: where answers are kept: a file (SQLite), or postgresql://user:password@host/name.
            By default NAME.likewise.db here, NAME being that of the data.
        host: where to listen; by default only this machine, with --share everywhere.
        port: where to listen; 0 is any free port.
        share: let others in, each by a link of their own.
        address: how others reach this server, where that is another name than the machine's own:
            "https://questions.example.org".
        certificate: a PEM file, to serve HTTPS.
        certificate_key: its key.
        retrain: refit in the background from the answers; questions get better.
        retrain_every: answered questions between two refits.
        retrain_epochs: epochs of a refit, where there is a run.
        no_browser: print the address, and open nothing.
        sampler: what to ask next; `likewise simulate` compares some.
        grid: candidates of a question.
        target: the accuracy to which the questions left are estimated.
        image_column: of Parquet files and datasets.
        label_column: of Parquet files and datasets.
        image_size: pixels a side that --encoder sees.
        batch_size: images at a time.
        device: where to compute; "auto" is a GPU where there is one.
        seed: of random weights and draws.
    """
    needs("`likewise ask`", "annotate", "fastapi", "sqlalchemy", "uvicorn")
    from rich.console import Console

    from likewise.annotate import Desk, Store
    from likewise.annotate.server import bind, serve
    from likewise.annotate.server.beginning import begin
    from likewise.annotate.server.images import only_inside
    from likewise.annotate.server.retraining import Plan, Retraining
    from likewise.annotate.server.serving import address_of
    from likewise.data import open_source
    from likewise.data.source import count

    console = Console(stderr=True)
    try:
        _check(host, share, address, certificate, certificate_key, grid, target, retrain_every)
        host = host or ("0.0.0.0" if share else "127.0.0.1")
        listener = bind(host, port)
        source = open_source(data, image_column=image_column, label_column=label_column)
        source, outside = only_inside(source)
        if outside:
            console.print(f"{count(outside, 'link')} out of the folder left out", highlight=False)
        start = begin(
            source,
            run=run,
            embeddings=embeddings,
            encoder=encoder,
            pretrained=pretrained,
            image_size=image_size,
            batch_size=batch_size,
            device=device,
            seed=seed,
            console=console,
        )
        project = project or f"{_name(data)}.likewise.db"
        store = Store.open(project)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error
    local = address_of(listener, secure=certificate is not None)
    public = (address or _public(host, local)).rstrip("/")
    with store:
        access, link = _access(store, share, public, local, secure=public.startswith("https"))
        try:
            desk = Desk(
                start.source,
                start.rows,
                store,
                sampler=sampler,
                grid=grid,
                target=target,
                seed=seed,
            )
        except ValueError as error:
            raise UsageError(str(error)) from error
        console.print(
            f"{start.source.description}; rows from {start.words}; answers in {store.place}",
            highlight=False,
            soft_wrap=True,
        )
        retraining = None
        if retrain:
            plan = Plan(
                project,
                start.rows,
                run,
                data,
                retrain_epochs,
                {"image_column": image_column, "label_column": label_column, "device": device},
            )
            retraining = Retraining(
                desk,
                plan,
                every=retrain_every,
                tell=lambda line: console.print(line, highlight=False, soft_wrap=True),
            ).start()
        try:
            serve(
                desk,
                access=access,
                listener=listener,
                certificate=certificate,
                certificate_key=certificate_key,
                project=_name(data),
                address=public,
                ready=lambda: _ready(console, link, share, no_browser),
            )
        finally:
            if retraining is not None:
                retraining.close()
            desk.close()
    console.print(f"\nstopped; answers are in {store.place}", highlight=False, soft_wrap=True)
    return 0


def _check(
    host: str | None,
    share: bool,
    address: str | None,
    certificate: Path | None,
    certificate_key: Path | None,
    grid: int,
    target: float,
    retrain_every: int,
) -> None:
    from likewise.annotate.server.serving import is_here

    if host is not None and not share and not is_here(host):
        raise ValueError(
            f"host is {host!r}, which others can reach: add --share, which lets people in by "
            "invitation, or leave --host out"
        )
    if address is not None:
        if not share:
            raise ValueError("address is given without --share: it is for invitation links")
        if not address.startswith(("http://", "https://")):
            raise ValueError(f"address is {address!r}: give http://NAME or https://NAME")
    if (certificate is None) != (certificate_key is None):
        raise ValueError("give both --certificate and --certificate-key, or neither")
    for name, path in (("certificate", certificate), ("certificate_key", certificate_key)):
        if path is not None and not path.is_file():
            raise ValueError(f"{name} is {path}, which is no file: give one in PEM")
    for name, value in (("grid", grid), ("retrain_every", retrain_every)):
        if value < 1:
            raise ValueError(f"{name} is {value}: give at least 1")
    if not 0 < target < 1:
        raise ValueError(f"target is {target}: give an accuracy between 0 and 1, such as 0.95")


def _access(
    store: Store, share: bool, public: str, local: str, *, secure: bool
) -> tuple[Access, str]:
    """Who may come in, and the link for whoever started this."""
    import getpass
    import socket
    from urllib.parse import urlsplit

    from likewise.annotate.server import Invited, OnePerson
    from likewise.annotate.server.access import HERE

    me = getpass.getuser()
    if not share:
        return OnePerson(me), local
    # The token of the last time is kept as a hash only: there is a new one at every start.
    store.revoke(me)
    token = store.add_person(me, admin=True)
    names = {*HERE, socket.gethostname(), socket.getfqdn(), urlsplit(public).hostname or ""}
    return Invited(store, names, addresses=True, secure=secure), f"{public}/join/{token}"


def _public(host: str, local: str) -> str:
    """The address that others see, as far as this machine can tell."""
    import ipaddress
    import socket
    from urllib.parse import urlsplit

    parts = urlsplit(local)
    try:
        everywhere = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        everywhere = False
    if not everywhere:
        return local
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: it only chooses a way out
            name = probe.getsockname()[0]
        except OSError:
            name = socket.gethostname()
    return f"{parts.scheme}://{name}:{parts.port}"


def _ready(console: Console, link: str, share: bool, no_browser: bool) -> None:
    import threading
    import webbrowser

    what = "your own link (it is for you alone)" if share else "the page"
    console.print(f"{what}: {link}\nCtrl-C stops", highlight=False, soft_wrap=True)
    if not no_browser:
        # A browser on a terminal would hold up whoever waits for it.
        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()


def _name(data: str) -> str:
    """What a project is called after: the last part of where its images are.

    >>> _name("data/photos/"), _name("fashion-mnist:test"), _name("train-*.parquet")
    ('photos', 'fashion-mnist-test', 'train')
    """
    name = Path(data).name.replace(":", "-")
    stem = name.split(".")[0] if "." in name.lstrip(".") else name
    kept = "".join(letter for letter in stem if letter.isalnum() or letter in "-_ ")
    return kept.strip("-_ ") or "images"
