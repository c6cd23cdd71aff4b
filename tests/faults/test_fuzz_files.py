"""Bytes that nobody wrote, in limits, configurations and data: one line of ours or a value, never another error."""

import contextlib
import gzip
import hashlib
import io
import json
import pickle
import struct
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faults.fuzzing import EXAMPLES, Edit, edits, fuzz, hurt, json_values, ours
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.cli import main
from leadline.cli._words import pairs
from leadline.core.config import RunConfig
from leadline.core.errors import LeadlineError, UnreadableError
from leadline.data import cifar, idx
from leadline.data.image import opened
from leadline.data.place import Official, Place, check_file, content_of
from leadline.data.unpickle import restricted
from leadline.diagnosis.thresholds import OURS, thresholds


@fuzz
@given(changes=edits)
def test_thresholds(tmp_path: Path, changes: list[Edit]) -> None:
    path = tmp_path / "limits.yaml"
    path.write_bytes(hurt(OURS.read_bytes(), changes))
    ours(thresholds, path)


LAUGHS = "\n".join(["a: &a [x]", *(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in pairwise("abcdefghi"))])


@pytest.mark.parametrize(
    "text",
    [
        "2001-99-99: {x: 1}",
        "{" * 5000,
        "x: {y: !!python/object/apply:os.getcwd []}",
        LAUGHS + "\nrules: {x: *i}",
        "x: {y: *nowhere}",
        "? {}\n: 1",
        "x: {y: 1" + "0" * 400 + "}",
        "x: {y: 1" + "0" * 5000 + "}",
        "vanishing_gradient: .nan",
        "[1, 2]",
        "\ud800".encode("utf-8", "surrogatepass").decode("latin1"),
        "&a {a: *a}",
    ],
)
def test_yaml_that_is_meant_badly(tmp_path: Path, text: str) -> None:
    path = tmp_path / "limits.yaml"
    path.write_text(text)
    with pytest.raises(LeadlineError) as caught:
        thresholds(path)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


configs = st.fixed_dictionaries(
    {"model": st.just("resnet-8") | json_values | st.fixed_dictionaries({"name": st.text(), "args": json_values})},
    optional={
        "data": json_values | st.fixed_dictionaries({"name": st.just("digits"), "batch_size": json_values}),
        "optimizer": json_values | st.fixed_dictionaries({"lr": json_values}),
        "schedule": json_values | st.fixed_dictionaries({"milestones": json_values, "name": st.just("step")}),
        "training": json_values | st.fixed_dictionaries({"steps": json_values, "clip": json_values}),
        "probes": json_values,
        "seed": json_values,
        "projection": json_values,
    },
)


@settings(fuzz, max_examples=3 * EXAMPLES)
@given(configs)
def test_configurations(values: dict[str, Any]) -> None:
    config = ours(RunConfig.parse, values)
    if config is not None:
        assert Path(config.identity).name == config.identity and config.identity not in (".", "..")
        assert RunConfig.parse(json.loads(json.dumps(config.model_dump(mode="json")))).digest == config.digest


@settings(fuzz, max_examples=max(10, EXAMPLES // 6))
@given(text=edits | st.text(max_size=20) | json_values)
def test_configuration_files(tmp_path: Path, text: Any) -> None:
    path = tmp_path / "config.json"
    whole = json.dumps({"config": {"optimizer": {"lr": -1.0}, "training": {"steps": 3}}}).encode()
    tuples = isinstance(text, list) and text and all(type(one) is tuple for one in text)
    path.write_bytes(hurt(whole, text) if tuples else json.dumps(text).encode())
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = main(["train", "resnet-8", "--config", str(path), "--lr", "-1", "--out", str(tmp_path / "runs")])
    assert code in (2, 3) and len(said.getvalue().splitlines()) == 1
    assert not (tmp_path / "runs").exists()


@fuzz
@given(st.lists(st.text(max_size=20) | st.just("a=" + "[" * 100_000), max_size=3))
def test_pairs_of_words(words: list[str]) -> None:
    ours(pairs, words, option="--arg")


IDX = bytes((0, 0, 8, 3)) + struct.pack(">3I", 2, 3, 3) + bytes(range(18))


@fuzz
@given(changes=edits)
def test_idx_files(changes: list[Edit]) -> None:
    found = ours(idx.parse, hurt(IDX, changes), name="images")
    assert found is None or found.dtype == torch.uint8


def batch() -> bytes:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (2, 3072), dtype=np.uint8)
    return pickle.dumps({"data": images, "labels": [3, 1], "filenames": ["a", "b"]}, protocol=2)


def family(md5: str) -> cifar.Family:
    return cifar.Family(
        name="toy",
        folder="toy",
        archive=Official("", "toy.tar.gz", "", "http://127.0.0.1:9/", check_file),
        train=(("batch", md5),),
        test=("batch", md5),
        labels="labels",
        classes=10,
    )


@settings(fuzz, max_examples=4 * EXAMPLES)
@given(changes=edits)
def test_pickled_images(tmp_path: Path, changes: list[Edit]) -> None:
    """Even where the digest is that of the damaged file."""
    whole = batch()
    start = whole.index(b"filenames") if len(changes) % 2 else len(whole)
    content = hurt(whole[:200], changes) + whole[200:] if start else whole
    (tmp_path / "toy").mkdir(exist_ok=True)
    (tmp_path / "toy" / "batch").write_bytes(content)
    found = ours(cifar.read, Place(tmp_path, download=False), family(hashlib.md5(content).hexdigest()))
    assert found is None or found.train.inputs.dtype == torch.uint8
    ours(restricted, hurt(whole, changes), path=tmp_path)


@fuzz
@given(changes=edits)
def test_zipped_files(tmp_path: Path, changes: list[Edit]) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(hurt(gzip.compress(IDX), changes))
    found = ours(content_of, path, hashlib.md5(IDX).hexdigest())
    assert found is None or found == IDX


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@fuzz
@given(changes=edits)
def test_images(tmp_path: Path, kind: str, changes: list[Edit]) -> None:
    images = pytest.importorskip("PIL.Image")
    whole = io.BytesIO()
    images.fromarray(np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)).save(whole, kind)
    path = tmp_path / "image.jpeg"
    path.write_bytes(hurt(whole.getvalue(), changes))
    found = ours(opened, path)
    assert found is None or found.mode == "RGB"


def test_a_png_that_claims_to_be_huge(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    head = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk)
    with pytest.raises(UnreadableError, match=r"image\.png"):
        opened(tmp_path / "image.png")
