"""Official files in the data folder: where they may lie, what is refused, and what a closed folder says."""

import gzip
import hashlib
import os

import pytest

from leadline.core.errors import UnreadableError
from leadline.data.place import Official, Place, content_of, explained

CONTENT = bytes(range(256)) * 40
MD5 = hashlib.md5(CONTENT).hexdigest()
OFFICIAL = Official("set/raw", "file.gz", MD5, "http://127.0.0.1:9/")


@pytest.fixture
def here(tmp_path):
    (tmp_path / "set" / "raw").mkdir(parents=True)
    return Place(tmp_path, download=False)


@pytest.mark.parametrize("at", ["set/raw/file.gz", "set/raw/file", "file.gz", "file"])
def test_a_file_may_be_packed_or_not_and_lie_in_its_folder_or_in_the_root(here, at):
    (here.root / at).write_bytes(gzip.compress(CONTENT) if at.endswith(".gz") else CONTENT)
    assert here.read(OFFICIAL, "file") == CONTENT


@pytest.mark.parametrize("pack", [gzip.compress, bytes], ids=["packed", "plain"])
@pytest.mark.parametrize("where", [0.0, 0.3, 0.6, 0.99])
def test_a_flipped_bit_anywhere_is_refused_and_names_the_file(here, pack, where):
    whole = bytearray(pack(CONTENT))
    whole[int(where * len(whole))] ^= 4
    path = here.root / "set/raw/file.gz"
    path.write_bytes(whole)
    with pytest.raises(UnreadableError, match=r"set/raw/file\.gz is damaged") as refused:
        here.read(OFFICIAL)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("length", [0, 1, 5, 30, 200])
def test_a_truncated_file_is_refused_and_names_the_file(here, length):
    (here.root / "set/raw/file.gz").write_bytes(gzip.compress(CONTENT)[:length])
    with pytest.raises(UnreadableError, match=r"set/raw/file\.gz is damaged, cut short|damaged or cut short"):
        here.read(OFFICIAL)


def test_a_file_in_the_root_may_be_of_another_dataset(here):
    (here.root / "file.gz").write_bytes(gzip.compress(b"another"))
    with pytest.raises(UnreadableError, match=rf"file\.gz is damaged.*{MD5} \(another dataset's\? .*set/raw\)"):
        here.read(OFFICIAL)


@pytest.fixture
def closed(tmp_path):
    """A folder without rights, seen by somebody who is not the superuser, to whom no folder is closed."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0)
    superuser = os.geteuid() == 0
    if superuser:
        os.seteuid(65534)
    yield folder
    if superuser:
        os.seteuid(0)


@pytest.mark.parametrize("download", [True, False])
def test_a_folder_without_rights_is_one_line_that_names_it(closed, download):
    with pytest.raises(UnreadableError, match=r"cannot (read|fetch) .*: Permission denied") as refused:
        Place(closed / "deeper", download).read(OFFICIAL)
    assert str(closed) in str(refused.value)
    with pytest.raises(UnreadableError, match=r"closed/file: Permission denied"):
        content_of(closed / "file", MD5)


def test_a_file_where_the_folder_should_be_is_one_line(tmp_path, web):
    (tmp_path / "data").write_text("no folder")
    official = Official("set", "file", MD5, f"{web.address}/")
    with pytest.raises(UnreadableError, match=r"cannot fetch file into .*data/set: Not a directory"):
        Place(tmp_path / "data").read(official)


def test_what_is_explained_already_passes_through(tmp_path):
    with pytest.raises(UnreadableError, match=r"^as it was$"), explained("read", tmp_path):
        raise UnreadableError("as it was")
