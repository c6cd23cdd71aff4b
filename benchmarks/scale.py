"""What docs/scale.md is worked out from: work, memory, bytes and projections of the ImageNet networks, decoding, runs.

Counts (multiplications, bytes) are exact and the same on every machine; seconds are CPU seconds of one thread here.
"""

import io
import json
import pickle
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

import leadline as ll
from leadline import models
from leadline.core.config import RunConfig
from leadline.data.image import DRAWS, opened, random_view
from leadline.execute.run_one import run_one
from leadline.taps.tape import Tape
from leadline.train.presets import choose

NAMES = ("resnet-101-imagenet", "resnext-101-imagenet")
BATCH, SIDE = 2, 224


def network(name: str) -> dict[str, Any]:
    """Counts for one network; memory is what a forward pass keeps for the backward pass, in fp32."""
    torch.manual_seed(0)
    model = models.create(name)
    images, labels = torch.randn(BATCH, 3, SIDE, SIDE), torch.arange(BATCH)
    with FlopCounterMode(display=False) as flops, torch.no_grad():
        model.eval()(images[:1])
    kept = kept_for_backward(model.train(), images)
    anatomy = ll.anatomy(model, images)
    shapes = [anatomy.blocks[0].in_shape, *(block.out_shape for block in anatomy.blocks)]
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "buffer bytes": sum(buffer.numel() * buffer.element_size() for buffer in model.buffers()),
        "GFLOP forward, one image": flops.get_total_flops() / 1e9,
        "MB kept an image": sum(kept.values()) / BATCH / 1e6,
        "MB kept an image, by stage": {name: round(value / BATCH / 1e6, 2) for name, value in by_stage(kept).items()},
        "MB of boundaries an image": sum(int(np.prod(shape[1:])) for shape in shapes) * 4 / 1e6,
        "largest block, million parameters": max(sum(p.numel() for p in b.parameters()) for b in model.blocks) / 1e6,
        "readings": {preset: readings(model, images, labels, preset) for preset in ("light", "standard")},
        "projections": projections(model),
    }


def kept_for_backward(model: nn.Module, images: Tensor) -> Counter[str]:
    """Bytes that autograd keeps, every storage once, under the block in whose forward pass it was kept."""
    place, seen = ["head and stem"], {p.untyped_storage().data_ptr() for p in model.parameters()}
    found: Counter[str] = Counter()
    handles = []
    for name, block in model.blocks.named_children():  # type: ignore[union-attr]
        handles.append(block.register_forward_pre_hook(lambda *_, name=name: place.__setitem__(0, name)))
        handles.append(block.register_forward_hook(lambda *_: place.__setitem__(0, "head and stem")))

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in seen:
            seen.add(storage.data_ptr())
            found[place[0]] += storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        output = model(images)
    del output
    for handle in handles:
        handle.remove()
    return found


def by_stage(kept: Counter[str]) -> dict[str, float]:
    """The largest block of each kind of size, that is, of each stage, in the order of depth."""
    sizes: dict[str, float] = {}
    for name, value in kept.items():
        if value not in sizes.values():
            sizes[name] = value
    return sizes


def readings(model: nn.Module, images: Tensor, labels: Tensor, preset: str) -> dict[str, float]:
    """Bytes a process hands around at a step at which all probes are due, an image and besides; bytes written."""
    gathered = []
    for count in (1, BATCH):
        anatomy = ll.anatomy(model, images)
        taps = [tap for probe in choose(preset).values() for tap in probe.taps(anatomy)]
        with Tape(model, taps) as tape:
            functional.cross_entropy(model(images[:count]), labels[:count]).backward()
            tape.read(gather=lambda parts: [gathered.append(len(pickle.dumps(parts))) or parts])  # type: ignore[func-returns-value]
        model.zero_grad()
    with TemporaryDirectory() as folder:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        with ll.Recorder(model, f"{folder}/a", probes="light", every=1, optimizer=optimizer) as recorder:
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            recorder.step(loss)
        written = (Path(folder) / "a" / "readings.jsonl").stat().st_size
    return {"KB handed around, one image": gathered[0] / 1e3, "KB more an image": (gathered[1] - gathered[0]) / 1e3,
            "KB written a step (light)": written / 1e3}  # fmt: skip


def projections(model: nn.Module) -> dict[str, Any]:
    """One projection of every transition, from a kernel that a training step has moved."""
    procrustes = ll.Procrustes(model)
    procrustes.project()
    with torch.no_grad():
        for site in procrustes.sites:
            size = float(site.kernel.norm()) / site.kernel.numel() ** 0.5
            site.kernel.add_(torch.randn_like(site.kernel), alpha=1e-3 * size)
    with FlopCounterMode(display=False) as flops:
        seconds = spent(procrustes.step)
    shapes = {site.name: "x".join(map(str, site.kernel.shape)) for site in procrustes.sites}
    return {"kernels": shapes, "GFLOP counted": flops.get_total_flops() / 1e9, "CPU seconds": seconds,
            "MB": sum(site.kernel.numel() for site in procrustes.sites) * 4 / 1e6}  # fmt: skip


def spent(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def decoding(count: int = 40) -> dict[str, float]:
    """Images a second that one core decodes, crops, scales and mirrors: 500 x 375 pixels, about 110 KB a file."""
    random = np.random.default_rng(0)
    small = random.integers(0, 255, (94, 125, 3), dtype=np.uint8)
    picture = Image.fromarray(small).resize((500, 375), Image.Resampling.BICUBIC)
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=95)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.jpeg"
        path.write_bytes(file.getvalue())
        draws = [random.random(DRAWS).tolist() for _ in range(count)]
        seconds = spent(lambda: [random_view(opened(path), SIDE, each) for each in draws])
    return {"KB a file": len(file.getvalue()) / 1e3, "images a second and core": count / seconds}


def small_run() -> dict[str, float]:
    """A run as sweeps have them: how much it leaves on the shared disk."""
    asked = RunConfig.parse({"model": "resnet-110", "training": {"steps": 12}, "probes": ["light"]})
    with TemporaryDirectory() as folder:
        done = run_one(asked, Path(folder)).folder
        checkpoints = sum(file.stat().st_size for file in done.checkpoint.rglob("*") if file.is_file())
        return {"MB of checkpoints": checkpoints / 1e6, "KB of readings a step": done.readings.stat().st_size / 12e3}


def main() -> None:
    torch.set_num_threads(1)
    found: dict[str, Any] = {"decoding": decoding(), "a run of ResNet-110": small_run()}
    for name in NAMES:
        sys.stderr.write(f"{name}\n")
        found[name] = network(name)
    json.dump(found, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
