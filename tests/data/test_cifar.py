"""CIFAR: small pickles of the official form are read by the restricted unpickler, and nothing dangerous ever is."""

import hashlib
import io
import os
import pickle
import struct
import tarfile
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from leadline.core.errors import UnreadableError
from leadline.data import cifar
from leadline.data.place import Official, Place, check_file
from leadline.data.unpickle import restricted

FOLDER = "toy-batches-py"


def pickled(count, seed, classes=10):
    """As Python 2 and an old numpy wrote them: arrays of numpy.core whose bytes are a string (opcode T, not B)."""
    rng = np.random.default_rng(seed)
    data, labels = rng.integers(0, 256, (count, 3072), dtype=np.uint8), rng.integers(0, classes, count).tolist()
    batch = {"data": data, "labels": labels, "batch_label": "a batch", "filenames": ["a.png"] * count}
    size = struct.pack("<i", data.nbytes)
    content = pickle.dumps(batch, protocol=3).replace(b"B" + size, b"T" + size)
    return content.replace(b"cnumpy._core.multiarray", b"cnumpy.core.multiarray"), data, labels


CONTENTS = {"data_batch_1": pickled(6, 1), "data_batch_2": pickled(5, 2), "test_batch": pickled(4, 3)}
MD5 = {name: hashlib.md5(content).hexdigest() for name, (content, _, _) in CONTENTS.items()}


def packed(names, kind="gz", folder=FOLDER):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{kind}") as archive:
        for name in names:
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(CONTENTS[name][0])
            archive.addfile(member, io.BytesIO(CONTENTS[name][0]))
    return out.getvalue()


@pytest.fixture
def family(web):
    web.files["toy-python.tar.gz"] = packed(CONTENTS)
    md5 = hashlib.md5(web.files["toy-python.tar.gz"]).hexdigest()
    return cifar.Family(
        name="toy",
        folder=FOLDER,
        archive=Official("", "toy-python.tar.gz", md5, f"{web.address}/", check_file),
        train=(("data_batch_1", MD5["data_batch_1"]), ("data_batch_2", MD5["data_batch_2"])),
        test=("test_batch", MD5["test_batch"]),
        labels="labels",
        classes=10,
    )


@pytest.fixture
def here(tmp_path):
    folder = tmp_path / "data" / FOLDER
    folder.mkdir(parents=True)
    for name, (content, _, _) in CONTENTS.items():
        (folder / name).write_bytes(content)
    return Place(tmp_path / "data", download=False)


def test_batches_are_joined_in_order(here, family):
    dataset = cifar.read(here, family)
    expected = np.concatenate([CONTENTS[name][1] for name in ("data_batch_1", "data_batch_2")])
    assert dataset.shape == (3, 32, 32) and len(dataset.test) == 4
    assert np.array_equal(dataset.train.inputs.numpy().reshape(11, 3072), expected)
    assert dataset.train.targets.tolist() == CONTENTS["data_batch_1"][2] + CONTENTS["data_batch_2"][2]


@pytest.mark.parametrize("where", [0.01, 0.5, 0.99])
def test_a_flipped_byte_is_refused_and_names_the_file(here, family, where):
    path = here.root / FOLDER / "data_batch_2"
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 1
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=rf"data_batch_2 is damaged.*expected {MD5['data_batch_2']}"):
        cifar.read(here, family)


@pytest.mark.parametrize("kind", ["gz", "xz"])
def test_an_archive_in_the_root_is_unpacked_there(tmp_path, family, kind):
    (tmp_path / f"{FOLDER}.tar.{kind}").write_bytes(packed(CONTENTS, kind))
    dataset = cifar.read(Place(tmp_path, download=False), family)
    assert len(dataset.train) == 11 and (tmp_path / FOLDER / "test_batch").read_bytes() == CONTENTS["test_batch"][0]


def test_a_missing_archive_is_fetched_and_unpacked(tmp_path, family, web):
    assert len(cifar.read(Place(tmp_path), family).test) == 4
    assert web.ranges == [None] and (tmp_path / "toy-python.tar.gz").is_file()


def test_many_who_need_the_archive_unpack_it_once(tmp_path, family, web):
    here, made = Place(tmp_path), []
    everyone = [threading.Thread(target=lambda: made.append(cifar.read(here, family))) for _ in range(4)]
    for one in everyone:
        one.start()
    for one in everyone:
        one.join()
    assert len(made) == 4 and web.ranges == [None]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [*CONTENTS, "toy-python.tar.gz"]


def test_only_expected_members_leave_an_archive(tmp_path, family):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name in (f"../{FOLDER}/test_batch", f"/{FOLDER}/data_batch_1", f"{FOLDER}/../../data_batch_2", "extra"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
        link = tarfile.TarInfo(f"{FOLDER}/test_batch")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    root = tmp_path / "inner" / "root"
    root.mkdir(parents=True)
    (root / f"{FOLDER}.tar.gz").write_bytes(out.getvalue())
    with pytest.raises(UnreadableError, match=r"toy-batches-py\.tar\.gz does not hold .*test_batch"):
        cifar.read(Place(root, download=False), family)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [f"{FOLDER}.tar.gz"]


def test_a_damaged_archive_is_refused_and_unpacks_nothing_half(tmp_path, family):
    path = tmp_path / f"{FOLDER}.tar.gz"
    for content in (packed(CONTENTS)[:20_000], b"no archive", packed(CONTENTS, "xz")[:20_000]):
        path.write_bytes(content)
        with pytest.raises(UnreadableError, match=r"tar\.gz is damaged or cut short"):
            cifar.read(Place(tmp_path, download=False), family)
        for left in (tmp_path / FOLDER).glob("*"):
            assert hashlib.md5(left.read_bytes()).hexdigest() == MD5[left.name]


def test_an_altered_member_never_gets_its_name(tmp_path, family):
    path = tmp_path / f"{FOLDER}.tar.gz"
    path.write_bytes(packed(CONTENTS))
    with pytest.raises(UnreadableError, match=r"toy-batches-py/test_batch in .*tar\.gz is damaged"):
        cifar.read(Place(tmp_path, download=False), replace(family, test=("test_batch", "0" * 32)))
    assert not list((tmp_path / FOLDER).glob("test*"))


def test_labels_that_do_not_fit_are_refused(here, family):
    with pytest.raises(UnreadableError, match=r"and labels: 6 images go with 6 labels below 3"):
        cifar.read(here, replace(family, classes=3))
    with pytest.raises(UnreadableError, match="does not hold 32x32 images and fine_labels: 'fine_labels'"):
        cifar.read(here, replace(family, labels="fine_labels"))


class Shout:
    """Something a pickle must not be able to build."""

    def __init__(self, call, *args):
        self.call, self.args = call, args

    def __reduce__(self):
        return self.call, self.args


@pytest.mark.parametrize(
    "value",
    [
        Shout(os.system, "false"),
        Shout(eval, "1 + 1"),
        Shout(np.load, "x"),
        Shout(np.ndarray, (3,)),
        Shout(np.dtype, "O"),
        Shout(getattr, [], "append"),
        torch.zeros(1),
        np.array([{"a": 1}], dtype=object),
        np.array(["text"]),
        pytest.raises,
        Shout,
    ],
    ids=lambda value: type(value).__name__,
)
def test_nothing_else_can_be_unpickled(value, tmp_path):
    with pytest.raises(UnreadableError, match=r"file is not a pickle of plain arrays: it (asks|builds)"):
        restricted(pickle.dumps({"data": value}, protocol=2), path=tmp_path / "file")


@pytest.mark.parametrize("protocol", [3, 4])
def test_plain_values_are_unpickled(protocol, tmp_path):
    value = {"a": [1, 2.5, "x", b"y", None, True], "b": np.arange(6, dtype=np.int32).reshape(2, 3), "c": (np.ones(2),)}
    read = restricted(pickle.dumps(value, protocol=protocol), path=tmp_path)
    assert read["a"] == value["a"] and read.keys() == value.keys()
    for ours, theirs in ((read["b"], value["b"]), (read["c"][0], value["c"][0])):
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)


@pytest.mark.parametrize("content", [b"", b"\x80\x02", b"text", pickle.dumps([1])[:-1]])
def test_broken_pickles_are_refused(content, tmp_path):
    with pytest.raises(UnreadableError, match="is not a pickle of plain arrays"):
        restricted(content, path=tmp_path)
