"""The classifier's index in a file: beside an SQLite project, else in the user's cache."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import make_url

from likewise.annotate import Desk, Store
from likewise.annotate.mind.index import KeptProbe, file_of_project
from likewise.data.arrays import ArraySource
from likewise.oracles.probe import Probe
from tests.annotate.clouds import ROWS, SOURCE, Ids, N, answer_some, soon
from tests.annotate.databases import KINDS, new_project

LOG = "likewise.annotate"


@pytest.fixture(params=KINDS)
def store(request, tmp_path) -> Iterator[Store]:
    with Store.open(new_project(request.param, tmp_path)) as opened:
        yield opened


@pytest.fixture
def team(tmp_path) -> Iterator[Store]:
    """A project on PostgreSQL."""
    with Store.open(new_project("postgresql", tmp_path)) as opened:
        yield opened


def began(store: Store, **settings) -> None:
    """Begin, and stay until there is an index."""
    with Desk(SOURCE, ROWS, store, grid=6, thinking="call", **settings) as desk:
        assert desk.question("ada") is not None
        assert desk._mind.pool


def kernels_computed(monkeypatch) -> list[float]:
    """Which kernels are computed, from now on."""
    from likewise.oracles.propagation import NeighborGraph

    computed, usual = list[float](), NeighborGraph.kernel

    def kernel(graph, smoothness):
        computed.append(smoothness)
        return usual(graph, smoothness)

    monkeypatch.setattr(NeighborGraph, "kernel", kernel)
    return computed


# --- the file -------------------------------------------------------------------------------------


def test_a_broken_index_file_is_computed_again(tmp_path, caplog):
    path = tmp_path / "kept.index"
    first = KeptProbe(ROWS, path)
    assert first.rebuilt
    again = KeptProbe(ROWS, path)
    assert not again.rebuilt
    plain = Probe(ROWS)
    for smoothness, _ in plain.ways:
        np.testing.assert_array_equal(again.kernel(smoothness), plain.kernel(smoothness))
    assert KeptProbe(ROWS + 1.0, path).rebuilt  # other rows
    KeptProbe(ROWS, path)
    whole = path.read_bytes()
    broken = [
        b"",
        whole[:100],
        whole[:-4],
        whole[:5000] + bytes(4096) + whole[9096:],  # a page of zeros
        whole[:-1] + bytes([whole[-1] ^ 1]),  # one bit
        b"likewise index 1\n{}\n",
        b"something else entirely",
    ]
    for content in broken:
        path.write_bytes(content)
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger=LOG):
            probe = KeptProbe(ROWS, path)
        assert probe.rebuilt
        assert "is broken" in caplog.text
        np.testing.assert_array_equal(probe.kernel(0.99), plain.kernel(0.99))
        assert path.read_bytes() == whole  # and it was written anew


def test_an_index_that_cannot_be_written_costs_nothing_else(tmp_path, caplog):
    (tmp_path / "folder").write_text("a file where a folder should be")
    with caplog.at_level(logging.WARNING, logger=LOG):
        probe = KeptProbe(ROWS, tmp_path / "folder" / "kept.index")
    assert "could not be kept" in caplog.text
    assert probe.kernel(0.9).shape == (N, N)


# --- of a project, on either database -------------------------------------------------------------


def test_a_restart_computes_nothing(store, monkeypatch):
    computed = kernels_computed(monkeypatch)
    began(store)
    assert len(computed) == 2
    kept = file_of_project(store, SOURCE)
    assert kept.is_file()
    content = kept.read_bytes()
    began(store)
    assert len(computed) == 2
    assert kept.read_bytes() == content


def test_a_desk_with_a_broken_index_works(store, caplog):
    with Desk(SOURCE, ROWS, store, grid=6, thinking="call") as desk:
        answer_some(desk, Ids(), 2)
        labels = desk.snapshot.labels
    kept = file_of_project(store, SOURCE)
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-100])
    with (
        caplog.at_level(logging.WARNING, logger=LOG),
        Desk(SOURCE, ROWS, store, grid=6, thinking="call") as desk,
    ):
        np.testing.assert_array_equal(desk.snapshot.labels, labels)  # replayed from the facts
        assert desk.question("ada") is not None
    assert "is broken" in caplog.text
    assert kept.read_bytes() == whole


def test_the_index_of_other_rows_is_computed_again(store, monkeypatch):
    began(store)
    kept = file_of_project(store, SOURCE)
    stale = kept.read_bytes()
    computed = kernels_computed(monkeypatch)
    other = ROWS @ np.array([[1.0, 0.5], [-0.3, 1.0]])
    with Desk(SOURCE, other, store, grid=6, thinking="call") as desk:
        assert desk.question("ada") is not None
        assert len(computed) == 2
        found = desk._mind._thinker._probe.kernel(0.9)
    np.testing.assert_array_equal(found, Probe(other).kernel(0.9))
    assert kept.read_bytes() != stale


def test_a_process_of_its_own_keeps_it_too(store, monkeypatch):
    with Desk(SOURCE, ROWS, store, grid=6, thinking="process") as desk:
        soon(lambda: bool(desk._mind.pool) or desk.question("ada") is None)
    computed = kernels_computed(monkeypatch)
    began(store)
    assert computed == []


def test_without_a_cache_nothing_is_kept(store, tmp_path, cache_home):
    began(store, cache=None)
    assert not list(cache_home.rglob("*")) and not list(tmp_path.rglob("*.index"))


def test_the_cache_can_be_a_file_of_ones_own(store, tmp_path, cache_home):
    began(store, cache=tmp_path / "mine")
    assert (tmp_path / "mine").is_file() and not list(cache_home.rglob("*"))


# --- in the user's cache folder -------------------------------------------------------------------


def test_it_lies_in_the_user_s_cache(team, cache_home):
    began(team)
    [kept] = [path for path in cache_home.rglob("*") if path.is_file()]
    assert kept == file_of_project(team, SOURCE)
    assert kept.parent == cache_home / "likewise" / "annotate"
    assert kept.suffix == ".index"
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700  # of nobody else's business


def test_its_name_differs_where_the_database_or_the_images_do(team, tmp_path):
    other = ArraySource(np.zeros((N, 2, 2), np.uint8), keys=list(SOURCE.keys), place="elsewhere/")
    with Store.open(new_project("postgresql", tmp_path)) as second:
        found = {
            file_of_project(store, source) for store in (team, second) for source in (SOURCE, other)
        }
    assert len(found) == 4
    with Store.open(team.url) as again:
        assert file_of_project(again, SOURCE) == file_of_project(team, SOURCE)


@pytest.mark.parametrize("where", ["before the host", "behind the question mark"])
def test_no_password_is_in_its_name_or_content(where, team, cache_home):
    """Nor a hash of one, from which it could be guessed: another password changes nothing."""
    first = file_of_project(team, SOURCE)
    began(team)
    content = first.read_bytes()
    first.unlink()
    url = make_url(team.url)
    if where == "before the host":
        url = url.set(password="open-sesame")
    else:
        url = url.update_query_dict({"password": "open-sesame"})
    with Store.open(url.render_as_string(hide_password=False)) as store:
        assert "open-sesame" in store.url and "open-sesame" not in store.place
        began(store)
    [kept] = [path for path in cache_home.rglob("*") if path.is_file()]
    assert kept == first
    assert kept.read_bytes() == content and b"open-sesame" not in content


@pytest.mark.parametrize(
    ("home", "message"),
    [("a file", "no folder to keep the index in"), ("closed", "could not be kept")],
)
def test_without_a_cache_folder_it_works_all_the_same(home, message, team, cache_home, caplog):
    folder = cache_home / "likewise" / "annotate"
    folder.parent.mkdir()
    if home == "a file":
        folder.touch()  # what docs/annotate.md says to turn it off
    else:
        folder.symlink_to("/proc/1")  # where not even root can make a file
    with caplog.at_level(logging.WARNING, logger=LOG):
        began(team)
    assert message in caplog.text


def test_a_user_without_a_home_can_work(team, monkeypatch, caplog):
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    with caplog.at_level(logging.WARNING, logger=LOG):
        assert file_of_project(team, SOURCE) is None
        began(team)
    assert "no folder to keep the index in" in caplog.text


def test_two_servers_share_one_file(team, cache_home):
    with (
        Desk(SOURCE, ROWS, team, grid=6, thinking="call") as first,
        Store.open(team.url) as again,
        Desk(SOURCE, ROWS, again, grid=6, thinking="call") as second,
    ):
        assert first.question("ada") is not None and second.question("bob") is not None
    assert len([path for path in cache_home.rglob("*") if path.is_file()]) == 1
