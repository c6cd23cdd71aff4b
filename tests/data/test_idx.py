"""IDX files: written byte by byte as LeCun's page describes, read back; and a family made of four of them."""

import gzip
import hashlib
import itertools

import pytest
import torch

from leadline.core.errors import UnreadableError
from leadline.data import idx
from leadline.data.place import Official, Place


def written(values):
    """The slow route: every number pushed into a list of bytes."""
    out = [0, 0, 8, values.dim()]
    for size in values.shape:
        out += [size >> 24 & 255, size >> 16 & 255, size >> 8 & 255, size & 255]
    for place in itertools.product(*map(range, values.shape)):
        out.append(int(values[place]))
    return bytes(out)


@pytest.mark.parametrize("shape", [(7,), (300,), (3, 4, 5)])
def test_what_was_written_is_read(shape):
    values = torch.randint(0, 256, shape, dtype=torch.uint8)
    assert torch.equal(idx.parse(written(values), name="x"), values)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "begins with nothing"),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x01", "begins with 00000d01"),
        (b"\x00\x00\x08\x03\x00\x00", "begins with 00000803"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x09abc", r"holds 3 values; its header \(9,\) asks for 9"),
    ],
)
def test_other_bytes_are_refused(content, says):
    with pytest.raises(UnreadableError, match=says):
        idx.parse(content, name="file")


def test_a_family_is_read_from_its_four_files(tmp_path):
    split = [torch.randint(0, 256, (n, 6, 6), dtype=torch.uint8) for n in (20, 8)]
    labels = [torch.arange(n, dtype=torch.uint8) % 4 for n in (20, 8)]
    contents = [written(split[0]), written(labels[0]), written(split[1]), written(labels[1])]
    officials = []
    for name, content in zip(idx.FILES, contents, strict=True):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
        officials.append(Official("toy/raw", f"{name}.gz", hashlib.md5(content).hexdigest(), "http://127.0.0.1:9/"))
    dataset = idx.read(Place(tmp_path, download=False), "toy", tuple(officials))
    assert dataset.shape == (1, 6, 6) and dataset.classes == 4
    assert torch.equal(dataset.train.inputs[:, 0], split[0]) and torch.equal(dataset.test.inputs[:, 0], split[1])
    assert torch.equal(dataset.test.targets, labels[1].long())
    pixels = split[0].double() / 255
    assert dataset.mean == pytest.approx((pixels.mean().item(),))
    assert dataset.std == pytest.approx((pixels.std(correction=0).item(),))
