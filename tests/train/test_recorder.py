"""Recording in loops as people write them: the numbers of plain training, and nothing left behind."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from foreign import TwoHeads, build, same_state, state
from torch import Tensor, distributed, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import leadline as ll
from leadline.core.errors import UsageError
from leadline.store.reader import Run, read

PROBES = ("light", "gradient_range", "weight_range", "activation_range", "update_ratio@every:1")
RATE = 1e-3


def net(*, normed: bool = False, widths: tuple[int, ...] = (4, 4, 8)) -> nn.Module:
    """Without batch norm a batch in three pieces has the gradients of the whole."""
    torch.manual_seed(0)
    return ll.models.create("resnet-20", widths=list(widths), norm="batch" if normed else "none")


def batches(count: int = 3, size: int = 12) -> list[tuple[Tensor, Tensor]]:
    torch.manual_seed(1)
    return [(torch.randn(size, 3, 8, 8), torch.randint(10, (size,))) for _ in range(count)]


def train(
    model: nn.Module, to: Path, *, pieces: int = 1, scaler: Any = None, fused: bool = False, **options: Any
) -> Run:
    """Three steps of a loop like everybody's, recorded; `autocast` is the dtype of its forward passes."""
    autocast, rate = options.pop("autocast", None), options.pop("rate", RATE)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, fused=fused)
    options = {"probes": PROBES, "every": 1} | options
    with ll.Recorder(model, to, scaler=scaler, **options) as recorder:
        for x, y in batches():
            optimizer.zero_grad()
            total = torch.zeros(())
            for part, wanted in zip(x.chunk(pieces), y.chunk(pieces), strict=True):
                with torch.autocast("cpu", autocast, enabled=autocast is not None):
                    loss = F.cross_entropy(model(part), wanted) / pieces
                (loss if scaler is None else scaler.scale(loss)).backward()
                total += loss.detach()
            if scaler is None:
                optimizer.step()
            else:
                scaler.step(optimizer)
                scaler.update()
            recorder.step(total)
    return read(to)


def same_readings(ours: Run, wanted: Run, *, rel: float, only: str = "") -> None:
    """The same rows, and numbers within `rel`: of themselves, of the widest range, of a slope per block."""
    assert ours.readings.height == wanted.readings.height > 0
    for probe, name in {(row["probe"], row["name"]) for row in wanted.readings.rows()}:
        if f"{probe}/{name}".startswith(only) and not name.startswith(("histogram", "p0", "p2", "p5", "p7", "p9")):
            one, two = (run.readings.where(probe=probe, name=name)["value"] for run in (ours, wanted))
            size = np.nanmax(np.abs(two)) if "range" in probe else 1.0 if name == "slope" else np.abs(two)
            close = (np.abs(one - two) <= rel * size) | (np.isnan(one) & np.isnan(two))
            assert close.all(), (probe, name, one, two)


@pytest.fixture
def plain(tmp_path: Path) -> Run:
    return train(net(), tmp_path / "plain")


def test_a_plain_loop_against_sounding_before_each_step(tmp_path: Path) -> None:
    model, twin = net(normed=True), net(normed=True)
    run = train(model, tmp_path / "run")
    assert run.state == "done" and run.outcome == {"format": 1, "outcome": "finished", "steps": 3, **_bytes(run)}
    optimizer = torch.optim.SGD(twin.parameters(), lr=RATE)
    for step, (x, y) in enumerate(batches()):
        wanted = ll.sound(twin, (x, y), F.cross_entropy, "gradient_norm_ratio")
        for name in ("ratio", "norm", "slope", "ratio/transition"):
            ours = run.readings.where(step=step, probe="gradient_norm_ratio", name=name)["value"]
            np.testing.assert_allclose(ours, wanted[f"gradient_norm_ratio/{name}"], rtol=1e-5)
        before = [p.detach().clone() for p in twin.parameters() if p.ndim > 1]
        optimizer.zero_grad()
        loss = F.cross_entropy(twin(x), y)
        loss.backward()
        optimizer.step()
        after = [p.detach() for p in twin.parameters() if p.ndim > 1]
        norms = run.readings.where(step=step, probe="weight_norm", name="norm")["value"]
        np.testing.assert_allclose(norms, [float(weight.norm()) for weight in after], rtol=1e-5)
        moved = [float((new - old).norm() / old.norm()) for new, old in zip(after, before, strict=True)]
        updates = run.readings.where(step=step, probe="update_ratio")["value"]
        np.testing.assert_allclose(updates, moved, rtol=1e-4)
        assert run.readings.where(step=step, name="train/loss")["value"].tolist() == [loss.item()]
    assert same_state(dict(twin.state_dict()), dict(model.state_dict()))


def _bytes(run: Run) -> dict[str, int]:
    return {"readings_bytes": run.folder.readings.stat().st_size}


def test_accumulation_in_three_pieces(plain: Run, tmp_path: Path) -> None:
    same_readings(train(net(), tmp_path / "pieces", pieces=3), plain, rel=1e-5)


@pytest.mark.parametrize("fused", [False, True])
def test_a_loss_scale_is_undone(plain: Run, tmp_path: Path, fused: bool) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=1)
    run = train(net(), tmp_path / "scaled", scaler=scaler, fused=fused, pieces=3)
    assert scaler.get_scale() == 2.0**19
    same_readings(run, plain, rel=1e-5)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_autocast_with_a_scaler(tmp_path: Path, half: torch.dtype) -> None:
    """At the same weights in every step, so that only the arithmetic of the passes differs."""
    plain = train(net(widths=(16, 16, 32)), tmp_path / "plain", rate=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    run = train(net(widths=(16, 16, 32)), tmp_path / "half", scaler=scaler, autocast=half, rate=0.0)
    same_readings(run, plain, rel=2e-2, only="gradient_norm_ratio/")
    same_readings(run, plain, rel=1e-12, only="weight_norm/")


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing(plain: Run, tmp_path: Path, reentrant: bool) -> None:
    class Spared(nn.Module):
        def __init__(self, chain: nn.Module) -> None:
            super().__init__()
            self.stem, self.blocks, self.head = chain.stem, chain.blocks, chain.head

        def forward(self, x: Tensor) -> Tensor:
            x = self.stem(x)
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=reentrant)
            return self.head(x)

    same_readings(train(Spared(net()), tmp_path / "spared"), plain, rel=1e-5)


def test_channels_last_and_double_precision(plain: Run, tmp_path: Path) -> None:
    last = net().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    same_readings(train(last, tmp_path / "last"), plain, rel=1e-5)


def heard_by(rank: int | None, folder: str) -> None:
    """One process of two, or the only one, on its part of the batches."""
    torch.set_num_threads(1)
    model: nn.Module = net()
    if rank is not None:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    to = Path(folder) / ("one" if rank is None else "two")
    with ll.Recorder(model, to, probes=PROBES, every=2) as recorder:
        for x, y in batches(4):
            if rank is not None:
                x, y = x.chunk(2)[rank], y.chunk(2)[rank]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            recorder.step(loss)
    if rank is not None:
        distributed.destroy_process_group()


def test_two_processes_read_what_one_reads(tmp_path: Path) -> None:
    """In a fresh interpreter, because one that has run other tests may have threads that a fork loses."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, __file__, str(tmp_path)], check=True, timeout=120, env={**os.environ, "PYTHONPATH": path}
    )
    one, two = read(tmp_path / "one"), read(tmp_path / "two")
    assert one.state == two.state == "done" and not two.notes
    assert two.readings.where(name="train/loss")["step"].tolist() == [0, 1, 2, 3]
    same_readings(two, one, rel=1e-5)


def hooks(model: nn.Module) -> int:
    return sum(len(found) for module in model.modules() for key, found in vars(module).items() if "hooks" in key)


def test_no_hook_on_steps_that_are_not_due(tmp_path: Path) -> None:
    model = net()
    with ll.Recorder(
        model, tmp_path / "run", probes=["gradient_norm_ratio", "weight_norm@every:1"], every=None
    ) as recorder:
        recorder.step  # noqa: B018
    assert hooks(model) == 0
    held = []
    with ll.Recorder(model, tmp_path / "other", probes=["gradient_norm_ratio@every:2", "weight_norm"]) as recorder:
        for x, y in batches(5):
            loss = F.cross_entropy(model(x), y)
            held.append(hooks(model) > 0)
            loss.backward()
            recorder.step(loss)
    assert held == [True, False, True, False, True] and hooks(model) == 0
    run = read(tmp_path / "other")
    assert sorted(set(run.readings.where(name="ratio")["step"].tolist())) == [0, 2, 4]
    assert sorted(set(run.readings.where(name="norm", probe="weight_norm")["step"].tolist())) == [0, 1, 2, 3, 4]


def test_training_is_bit_for_bit_what_it_would_have_been(tmp_path: Path) -> None:
    def trained(recorded: bool) -> dict[str, Any]:
        foreign = build("volumes")  # dropout draws random numbers
        model, optimizer = foreign.model, torch.optim.Adam(foreign.model.parameters())
        torch.manual_seed(7)
        recorder = ll.Recorder(model, tmp_path / "run", probes=PROBES, every=2) if recorded else None
        if recorder:
            recorder.attach()
        for _ in range(4):
            optimizer.zero_grad()
            loss = foreign.loss()
            loss.backward()
            optimizer.step()
            if recorder:
                recorder.step(loss)
        if recorder:
            recorder.detach()
        return {"model": dict(model.state_dict()), "random": torch.get_rng_state(), "hooks": hooks(model)}

    assert same_state(trained(True), trained(False))


def test_evaluation_between_steps_is_not_heard(plain: Run, tmp_path: Path) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    with ll.Recorder(model, tmp_path / "run", probes=PROBES, every=1) as recorder:
        for x, y in batches():
            with torch.no_grad():
                model(100 * x)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            with torch.inference_mode():
                model(100 * x)
            loss.backward()
            optimizer.step()
            recorder.step(loss)
    same_readings(read(tmp_path / "run"), plain, rel=1e-6)


def test_the_first_call_may_have_any_arguments(tmp_path: Path) -> None:
    class Shifted(TwoHeads):
        def forward(self, image: Tensor, scale: float, *, shift: float = 0.0) -> dict[str, Tensor]:
            return super().forward(image=image + shift, scale=scale)

    for name, call in {
        "keywords": lambda model, x: model(image=x, scale=2.0),
        "both": lambda model, x: model(x, 2.0, shift=1.0),
    }.items():
        model = TwoHeads() if name == "keywords" else Shifted()
        with ll.Recorder(model, tmp_path / name) as recorder:
            loss = call(model, torch.randn(4, 3, 8, 8))["logits"].sum()
            loss.backward()
            recorder.step(loss)
        run = read(tmp_path / name)
        assert np.isfinite(run.readings.where(probe="gradient_norm_ratio", name="ratio")["value"]).all()
        assert run.record["anatomy"]["model"] == type(model).__name__


def test_a_compiled_model_warns_and_is_read_all_the_same(plain: Run, tmp_path: Path) -> None:
    compiled = torch.compile(net(), backend="eager")
    with pytest.warns(UserWarning, match="this model was compiled; the eager module inside it is read instead"):
        run = train(compiled, tmp_path / "run")  # type: ignore[arg-type]
    same_readings(run, plain, rel=1e-5)


def test_probes_that_need_more_are_given_it(tmp_path: Path) -> None:
    data = batches(2)
    run = train(net(), tmp_path / "run", probes=["generalisation_gap@every:2"], every=None, splits=(data, data))
    gaps = run.readings.where(name="gap")
    assert gaps["step"].tolist() == [0, 2] and gaps["value"].tolist() == [0.0, 0.0]
    last = train(net(), tmp_path / "last", probes=["weight_norm@end"], every=None, steps=3, batch=data[0])
    assert set(last.readings.where(probe="weight_norm")["step"].tolist()) == {2}
    profile = ll.Profile.of_run(last)
    assert profile.steps == [0, 1, 2] and len(profile["weight_norm/norm"]) == len(profile.names("weight_norm"))


def test_going_on_after_a_stop(plain: Run, tmp_path: Path) -> None:
    folder, model = tmp_path / "run", net()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

    def steps(data: list[tuple[Tensor, Tensor]], recorder: ll.Recorder) -> Iterator[int]:
        for x, y in data:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            recorder.step(loss)
            yield recorder.steps

    with pytest.raises(KeyboardInterrupt), ll.Recorder(model, folder, probes=PROBES, every=1) as recorder:
        for count in steps(batches(), recorder):
            kept = {name: tensor.clone() for name, tensor in model.state_dict().items()}
            if count == 2:
                raise KeyboardInterrupt
    assert read(folder).state == "dead" and hooks(model) == 0
    model.load_state_dict(kept)
    with folder.joinpath("readings.jsonl").open("a") as torn:
        torn.write('{"step":2,"pro')
    with pytest.raises(UsageError, match="holds a run already; choose another folder, or go on with it by start=STEP"):
        ll.Recorder(model, folder).attach()
    with ll.Recorder(model, folder, probes=PROBES, every=1, start=2) as recorder:
        list(steps(batches()[2:], recorder))
    run = read(folder)
    assert run.state == "done" and not run.notes
    same_readings(run, plain, rel=1e-6)


def test_the_description_says_what_the_numbers_are_counted_along(plain: Run) -> None:
    record = plain.record
    assert record["probes"]["gradient_norm_ratio"] == {"axis": "block", "when": "every:1", "args": {"stem": False}}
    assert (
        len(record["places"]["boundary"]) == len(record["places"]["block"]) + 1 == len(record["anatomy"]["blocks"]) + 1
    )
    layers = plain.readings.where(probe="weight_norm", name="norm", step=0)
    assert layers.height == len(record["places"]["layer"])
    assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_what_cannot_be_recorded_is_one_line(tmp_path: Path) -> None:
    model = net()
    with pytest.raises(UsageError, match="not attached; use `with Recorder"):
        ll.Recorder(model, tmp_path / "a").step(1.0)
    with ll.Recorder(model, tmp_path / "a") as recorder:
        with pytest.raises(UsageError, match="a recorder is already attached to this Chain; detach it first"):
            ll.Recorder(model, tmp_path / "b").attach()
        with pytest.raises(UsageError, match="was not called in this step: is it the one trained"):
            recorder.step(1.0)
        x, y = batches(1)[0]
        loss = F.cross_entropy(model(x), y, reduction="none")
        with pytest.raises(UsageError, match=r"takes one loss, got a tensor of shape \(12,\)"):
            recorder.step(loss)
    with ll.Recorder(model, tmp_path / "b"):
        pass
    assert hooks(model) == 0


def test_sounding_a_model_that_is_recorded(plain: Run, tmp_path: Path) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    with ll.Recorder(model, tmp_path / "run", probes=PROBES, every=1) as recorder:
        for x, y in batches():
            optimizer.zero_grad()
            before = state(model)
            ll.sound(model, (x, y), F.cross_entropy, "light")
            assert same_state(before, state(model))
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            recorder.step(loss)
    same_readings(read(tmp_path / "run"), plain, rel=1e-6)


def test_a_gradient_that_overflows_is_said(tmp_path: Path) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    run = train(net(), tmp_path / "run", scaler=scaler)
    first = run.readings.where(probe="gradient_norm_ratio", name="ratio", step=0)
    assert all(
        math.isfinite(value) or "not finite" in note for value, note in zip(first["value"], first["note"], strict=True)
    )
    updates = run.readings.where(probe="update_ratio", step=0)["value"]
    assert (updates == 0).all(), "the scaler skipped the step"


def test_shards_are_refused(tmp_path: Path) -> None:
    from torch.distributed.tensor import distribute_tensor, init_device_mesh

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        mesh = init_device_mesh("cpu", (1,))
        model[1].weight = nn.Parameter(distribute_tensor(model[1].weight.detach(), mesh))
        with pytest.raises(UsageError, match=r"1\.weight is sharded over processes \(FSDP or DTensor\)"):
            ll.Recorder(model, tmp_path / "run").attach()
        with pytest.raises(UsageError, match="use DistributedDataParallel"):
            ll.sound(model, torch.randn(2, 4), lambda out, _: out.sum(), "light")
    finally:
        distributed.destroy_process_group()
    assert not (tmp_path / "run").exists()


if __name__ == "__main__":
    # the two first: a process that has trained has threads which a fork loses
    torch.multiprocessing.start_processes(heard_by, (sys.argv[1],), nprocs=2, start_method="fork")
    heard_by(None, sys.argv[1])
