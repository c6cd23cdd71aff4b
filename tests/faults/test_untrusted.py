"""Nothing that is read is executed: files that would run code where they are opened as what they pretend to be."""

import contextlib
import io
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from faults.fuzzing import PARTS, made, net, ours, written

from leadline.cli import main
from leadline.data import idx
from leadline.data.image import opened
from leadline.data.unpickle import restricted
from leadline.diagnosis.thresholds import thresholds
from leadline.live.catalogue import Catalogue
from leadline.store.reader import read
from leadline.train import checkpoint


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("checkpoint"))


class Bomb:
    """What a pickle runs when it is opened as such: it makes a folder."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.canary),)


def payloads(canary: Path) -> dict[str, bytes]:
    torch_file = io.BytesIO()
    torch.save({"weight": Bomb(canary)}, torch_file)
    return {
        **{f"pickle {protocol}": pickle.dumps(Bomb(canary), protocol) for protocol in range(6)},
        "in a dict": pickle.dumps({"data": Bomb(canary), "labels": [1]}, 2),
        "torch": torch_file.getvalue(),
        "yaml": f"x: !!python/object/apply:os.mkdir [{str(canary)!r}]\n".encode(),
        "python": f"__import__('os').mkdir({str(canary)!r})\n".encode(),
        "postscript": f"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n({canary}) (w) file\n".encode(),
    }


def test_nothing_that_is_read_is_executed(tmp_path: Path, checkpoints: Path) -> None:
    canary, readers = tmp_path / "executed", 0
    for kind, content in payloads(canary).items():
        root = tmp_path / "runs"
        folder = made(root / "run")
        shutil.copytree(checkpoints, folder.checkpoint)
        for name in ("readings.jsonl", "run.json", "done.json"):
            whole = (folder.path / name).read_bytes()
            (folder.path / name).write_bytes(content)
            ours(read, folder.path)
            Catalogue(root).settle()
            (folder.path / name).write_bytes(whole)
        last = folder.checkpoint / "step-000000002"
        for name in PARTS:
            (last / name).write_bytes(content)
        ours(checkpoint.newest, folder.checkpoint)
        ours(checkpoint.read, last, *net())
        for name in ("limits.yaml", "image.jpeg", "config.json"):
            (tmp_path / name).write_bytes(content)
        ours(thresholds, tmp_path / "limits.yaml")
        with contextlib.suppress(ModuleNotFoundError):
            ours(opened, tmp_path / "image.jpeg")
        ours(idx.parse, content, name="images")
        ours(restricted, content, path=tmp_path)
        with contextlib.redirect_stderr(io.StringIO()):
            assert main(["train", "resnet-8", "--config", str(tmp_path / "config.json")]) == 3
        assert not canary.exists(), kind
        shutil.rmtree(root)
        readers += 12
    pickle.loads(payloads(canary)["pickle 2"])
    assert canary.exists(), "the payloads do what they are meant to where they are opened"
    canary.rmdir()
    yaml.unsafe_load(payloads(canary)["yaml"])
    assert canary.exists()
    print(f"\n{len(payloads(canary))} payloads, {readers} readings, 0 executed")
