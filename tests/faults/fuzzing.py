"""What fuzz tests share: ways to damage bytes, what counts as a proper answer, and small things to damage."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from torch import nn

from leadline.core.errors import LeadlineError
from leadline.store.layout import RunFolder
from leadline.store.writer import RunWriter
from leadline.train import checkpoint

EXAMPLES = int(os.environ.get("LEADLINE_FUZZ", "40"))
fuzz = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

Edit = tuple[str, float, bytes]
pieces = st.binary(max_size=12) | st.sampled_from(
    [b"\x00", b"\xff\xff\xff\xff", b"\n", b'"', b"}", b"{", b"[" * 3000, b"NaN", b"1e999", b"-1", b"9" * 5000, b"null"]
)
edits = st.lists(
    st.tuples(st.sampled_from(["flip", "cut", "put", "replace", "drop"]), st.floats(0, 1), pieces),
    min_size=1,
    max_size=4,
)


def hurt(content: bytes, changes: list[Edit]) -> bytes:
    """The content with some changes, each at a share of its length."""
    found = bytearray(content)
    for kind, share, piece in changes:
        at = int(share * len(found))
        if kind == "cut":
            del found[at:]
        elif kind == "put":
            found[at:at] = piece
        elif kind == "drop":
            del found[at : at + len(piece)]
        elif kind == "replace":
            found[at : at + len(piece)] = piece
        elif at < len(found):
            found[at] ^= 1 << (len(piece) % 8)
    return bytes(found)


def ours(what: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The value, or None where one line of ours said why there is none; any other error fails the test."""
    try:
        return what(*args, **options)
    except LeadlineError as error:
        assert str(error) and "\n" not in str(error) and len(str(error)) < 2000, str(error)[:3000]
        return None


def made(folder: Path) -> RunFolder:
    """A small run that ended well."""
    with RunWriter(folder) as writer:
        writer.describe({"config": {"model": {"name": "resnet-8"}}, "steps": 20, "environment": {"started": "2026"}})
        for step in range(20):
            writer.append(step, "loss", "train/loss", 1.0 / (step + 1))
            writer.append(step, "gradient_norm_ratio", "ratio", [0.5, float("nan"), 2.0], notes={1: "no gradient"})
        writer.finish({"outcome": "finished", "steps": 20, "last": {"loss": 0.1, "accuracy": 0.5}})
    return RunFolder(folder)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def net() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Linear(3, 2)
    return model, torch.optim.Adam(model.parameters(), lr=0.1)


def written(folder: Path) -> Path:
    """Two small checkpoints in a folder."""
    model, optimizer = net()
    for step in (1, 2):
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        checkpoint.write(folder, model, optimizer, checkpoint.Position(step, 0, {"step": step, "loss": 0.5}))
    return folder


PARTS = ("model.safetensors", "optimizer.safetensors", "random.safetensors", "state.json")
