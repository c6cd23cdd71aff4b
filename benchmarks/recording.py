"""Recording every step (`light`) beside a bare step and hooks as people write them, and its memory at 1001 layers.

ResNet-110, batch 128, one process, sides in turn. In place, a side's cost is a few percent of a step that itself varies
by as much, which the second bare side shows; so the cost is also taken by itself: everything but the reductions at
batch 2 (hooks, fetching, weight norms, writing), where the difference of the two sides is large beside the noise, and
the reductions on tensors as large as the boundaries of batch 128. Memory is the high-water mark (VmHWM) of one step of
ResNet-1001 at batch 8 in a process of its own, above what was there before, freed memory given back at once.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from harness import Row, Timing, interleave, ratio_row, ratios, run
from torch import Tensor, nn
from torch.nn import functional

import leadline as ll
from leadline.taps.reductions import FROBENIUS

BATCH, SMALL, DEEP = 128, 2, 8
HERE = Path(__file__).parent


class Loop:
    """The loop everybody writes, on one batch of noise, one step at a time."""

    def __init__(self, name: str, batch: int) -> None:
        torch.manual_seed(0)
        self.model = ll.models.create(name)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
        self.images, self.labels = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))

    def __call__(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self.model(self.images), self.labels)
        loss.backward()
        self.optimizer.step()
        self.after(loss)

    def after(self, loss: Tensor) -> None:
        """Nothing."""


class Light(Loop):
    """Recorded: gradient norm ratios of all blocks, the loss and all weight norms, every step, into a run folder."""

    def __init__(self, name: str, batch: int, folder: str) -> None:
        super().__init__(name, batch)
        self.recorder = ll.Recorder(self.model, Path(folder) / f"{name}-{batch}", probes="light").attach()

    def after(self, loss: Tensor) -> None:
        self.recorder.step(loss)


class Naive(Loop):
    """A tensor hook on the output of every layer, one `.item()` each; weight norms one `.item()` each."""

    def __init__(self, name: str, batch: int) -> None:
        super().__init__(name, batch)
        self.norms: dict[str, float] = {}
        for key, module in self.model.named_modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                module.register_forward_hook(self._hook(key))

    def _hook(self, key: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        def note(gradient: Tensor) -> None:
            self.norms[key] = gradient.norm().item()

        def hook(_: nn.Module, __: tuple[Tensor, ...], output: Tensor) -> None:
            output.register_hook(note)

        return hook

    def after(self, loss: Tensor) -> None:
        self.norms |= {key: weight.detach().norm().item() for key, weight in self.model.named_parameters()}
        self.norms["loss"] = loss.item()


class FullBackward(Loop):
    """`torch.linalg.vector_norm` in a full backward hook on every block."""

    def __init__(self, name: str, batch: int) -> None:
        super().__init__(name, batch)
        self.norms: dict[str, tuple[Tensor, Tensor]] = {}
        for block in ll.anatomy(self.model, self.images[:2]).blocks:
            self.model.get_submodule(block.name).register_full_backward_hook(self._hook(block.name))

    def _hook(self, key: str) -> Callable[[nn.Module, tuple[Tensor, ...], tuple[Tensor, ...]], None]:
        def note(_: nn.Module, to_input: tuple[Tensor, ...], to_output: tuple[Tensor, ...]) -> None:
            self.norms[key] = torch.linalg.vector_norm(to_input[0]), torch.linalg.vector_norm(to_output[0])

        return note


def reductions(model: nn.Module) -> Callable[[], object]:
    """The norms of as many values as the boundaries of a batch have."""
    blocks = ll.anatomy(model, torch.randn(2, 3, 32, 32)).blocks
    shapes = [blocks[0].in_shape, *(block.out_shape for block in blocks)]
    tensors = [torch.randn(BATCH, *shape[1:]) for shape in shapes]
    return lambda: [FROBENIUS.map(tensor) for tensor in tensors]


def speed(rounds: int) -> list[Row]:
    name = "resnet-110"
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        small = {"bare": Loop(name, SMALL), "light": Light(name, SMALL, folder)}
        alone = interleave({**small, "norms": reductions(small["bare"].model)}, rounds=4 * rounds, warm_up=2)
        sides = {"bare step": Loop(name, BATCH), "light": Light(name, BATCH, folder), "bare again": Loop(name, BATCH)}
        sides |= {".item() per layer": Naive(name, BATCH), "full backward hooks": FullBackward(name, BATCH)}
        times = interleave(sides, rounds=rounds)
        for recorded in (small["light"], sides["light"]):
            assert isinstance(recorded, Light)
            recorded.recorder.detach()
    bare = times["bare step"]
    fixed = Timing("", tuple(a - b for a, b in zip(alone["light"].seconds, alone["bare"].seconds, strict=True))).median
    cost = (fixed + alone["norms"].median) / bare.median
    again = ratios(times["bare again"], bare)
    note = f"hooks, reading, writing {1e3 * fixed:.1f} ms + norms {1e3 * alone['norms'].median:.1f} ms"
    rows = [
        Row(
            what="light every step, ResNet-110, batch 128: its cost by itself",
            against="bare step",
            value=1 + cost,
            bar=1.03,
            at_most=True,
            note=f"{note}; a bare step {1e3 * bare.median:.0f} ms",
        ),
        ratio_row(
            "the same in place",
            top=times["light"],
            bottom=bare,
            bar=1.03,
            at_most=True,
            note=f"the bare step beside itself {again[0]:.3f} ({again[1]:.3f} .. {again[2]:.3f})",
        ),
    ]
    peers = (".item() per layer", "full backward hooks")
    rows += [
        ratio_row(f"light against {it}", top=times["light"], bottom=times[it], bar=1.03, at_most=True) for it in peers
    ]
    return rows


def one_step(recorded: bool) -> None:
    """Prints how far one step of ResNet-1001 goes above what was there, in MB."""
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        loop = Light("resnet-1001", DEEP, folder) if recorded else Loop("resnet-1001", DEEP)
        before = resident("VmRSS")
        loop()
        if isinstance(loop, Light):
            loop.recorder.detach()
        sys.stdout.write(f"{resident('VmHWM') - before}\n")


def resident(what: str) -> float:
    """VmRSS (now) or VmHWM (peak) of this process in MB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:")) / 1024


def memory() -> Row:
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    peaks = {}
    for recorded in (False, True):
        code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import recording; recording.one_step({recorded})"
        done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, check=True)
        peaks[recorded] = float(done.stdout)
    return Row(
        what="peak memory of a light step, ResNet-1001, batch 8",
        against="bare step",
        value=peaks[True] / peaks[False],
        bar=1.05,
        at_most=True,
        note=f"{peaks[True]:.0f} MB against {peaks[False]:.0f} MB (VmHWM above the start)",
    )


def measure(rounds: int) -> list[Row]:
    return [*speed(rounds), memory()]


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=9)
