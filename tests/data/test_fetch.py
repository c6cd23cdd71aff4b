"""Fetching from a real server on the loopback: whole, broken off, altered, without Range, onto a full disk."""

import hashlib
import random
import threading
from pathlib import Path

import pytest

from leadline.core.errors import UnreadableError, UsageError
from leadline.data import place as places
from leadline.data.place import Official, Place, check_file

CONTENT = random.Random(5).randbytes(700_000)
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def official(web):
    web.files["set/file.bin"] = CONTENT
    return Official("set", "file.bin", MD5, f"{web.address}/set/", check_file)


@pytest.fixture
def here(tmp_path, official):
    return Place(tmp_path / "root")


def left_behind(here):
    return sorted(path.name for path in here.root.rglob("*") if path.is_file())


def test_a_missing_file_is_fetched_once(here, official, web, capfd):
    assert here.read(official) == here.read(official) == CONTENT
    assert web.ranges == [None] and left_behind(here) == ["file.bin"]
    out, err = capfd.readouterr()
    assert out == "" and "file.bin" in err


def test_a_broken_transfer_goes_on_where_it_stopped_at_once(here, official, web):
    web.breaks_after = [300_000, 100_000]
    assert here.fetched(official).read_bytes() == CONTENT
    assert web.ranges == [None, "bytes=300000-", "bytes=400000-"]


def test_a_transfer_that_brings_nothing_more_keeps_what_there_is_and_says_so(here, official, web):
    web.breaks_after = [250_000, 0]
    with pytest.raises(
        UnreadableError, match=r"file\.bin is not in .*set and could not be fetched from http://127.*early"
    ):
        here.fetched(official)
    assert left_behind(here) == ["file.bin.part"]
    assert here.fetched(official).read_bytes() == CONTENT
    assert web.ranges[-1] == "bytes=250000-" and left_behind(here) == ["file.bin"]


def test_a_server_without_ranges_is_asked_for_the_whole_file(here, official, web):
    web.knows_ranges = False
    target = here.root / "set"
    target.mkdir(parents=True)
    (target / "file.bin.part").write_bytes(CONTENT[:1000])
    assert here.fetched(official).read_bytes() == CONTENT
    assert web.ranges == ["bytes=1000-"]


@pytest.mark.parametrize("stale", [b"x" * 1000, CONTENT + b"x"], ids=["other bytes", "too long"])
def test_a_partial_file_of_something_else_is_thrown_away(here, official, web, stale):
    target = here.root / "set"
    target.mkdir(parents=True)
    (target / "file.bin.part").write_bytes(stale)
    assert here.fetched(official).read_bytes() == CONTENT
    assert web.ranges == [f"bytes={len(stale)}-", None]


def test_a_complete_partial_file_is_taken_as_it_is(here, official):
    target = here.root / "set"
    target.mkdir(parents=True)
    (target / "file.bin.part").write_bytes(CONTENT)
    assert here.fetched(official).read_bytes() == CONTENT


def test_altered_bytes_are_refused_and_removed(here, official, web):
    web.files["set/file.bin"] = bytes([CONTENT[0] ^ 1]) + CONTENT[1:]
    with pytest.raises(UnreadableError, match=rf"what http.*file\.bin serves was refused.*expected {MD5}"):
        here.fetched(official)
    assert left_behind(here) == []


def test_the_mirror_has_the_layout_of_a_data_folder(here, official, web, monkeypatch):
    web.files = {"mirror/set/file.bin": CONTENT}
    monkeypatch.setenv("LEADLINE_MIRROR", f"{web.address}/mirror/")
    assert here.fetched(official).read_bytes() == CONTENT
    monkeypatch.setenv("LEADLINE_MIRROR", "/somewhere")
    with pytest.raises(UsageError, match="LEADLINE_MIRROR must begin with http"):
        official.url()


def test_offline_names_file_folder_address_and_what_to_do(here, official, web):
    web.files.clear()
    with pytest.raises(UnreadableError) as missing:
        here.fetched(official)
    for part in ("file.bin is not in", str(here.root / "set"), "404", "LEADLINE_DATA", "LEADLINE_MIRROR", "curl -L"):
        assert part in str(missing.value)
    nobody = Official("set", "file.bin", MD5, "http://127.0.0.1:9/")
    with pytest.raises(UnreadableError, match=r"could not be fetched from http://127\.0\.0\.1:9/file\.bin .*refused"):
        here.fetched(nobody)
    assert "\n" not in str(missing.value) and left_behind(here) == []


def test_without_download_nothing_is_asked(tmp_path, official, web):
    with pytest.raises(UnreadableError, match=r"file\.bin is not in .*set; put it there"):
        Place(tmp_path, download=False).read(official)
    assert web.ranges == []


def test_a_full_disk_is_one_line_and_leaves_nothing(here, official):
    target = here.root / "set"
    target.mkdir(parents=True)
    (target / "file.bin.part").symlink_to("/dev/full")
    with pytest.raises(UnreadableError, match=r"cannot fetch file\.bin into .*set: No space left on device"):
        here.fetched(official)
    assert left_behind(here) == []


def test_a_file_larger_than_the_disk_is_not_begun(here, official, web):
    web.claims = 10**18
    with pytest.raises(UnreadableError, match=r"bytes free; file\.bin needs 1,000,000,000,000,000,000 more"):
        here.fetched(official)
    assert left_behind(here) == []


def test_many_who_want_the_same_file_fetch_it_once(here, official, web):
    everyone = [threading.Thread(target=here.fetched, args=(official,)) for _ in range(4)]
    for one in everyone:
        one.start()
    for one in everyone:
        one.join()
    assert here.read(official) == CONTENT and web.ranges == [None]


def test_the_data_root_is_chosen_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("LEADLINE_DATA", raising=False)
    assert places.data_root() == tmp_path / "cache" / "leadline"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert places.data_root() == Path.home() / ".cache" / "leadline"
    monkeypatch.setenv("LEADLINE_DATA", "~/data")
    assert places.data_root() == Path.home() / "data"
