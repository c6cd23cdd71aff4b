"""Lightning and Hugging Face: trained for real with the callback, the same as without, with the readings of a loop."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from foreign import declare_vision_operators
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

import leadline as ll
from leadline.core.errors import UsageError
from leadline.store.reader import read

pytestmark = pytest.mark.filterwarnings("ignore")
"""Both frameworks warn of much that is theirs."""

STEPS, BATCH = 8, 4
PROBES = "light"


@pytest.fixture(scope="module", autouse=True)
def _vision() -> None:
    """Both import torchvision where it is installed."""
    declare_vision_operators()


def losses_of(folder: Path) -> dict[int, float]:
    found = read(folder).readings.where(name="train/loss")
    return dict(zip(found["step"].tolist(), found["value"].tolist(), strict=True))


# -- Lightning -------------------------------------------------------------------------------------------------------


def data(count: int = STEPS * BATCH) -> TensorDataset:
    generator = torch.Generator().manual_seed(5)
    return TensorDataset(torch.randn(count, 3, 8, 8, generator=generator), torch.arange(count) % 10)


def lightning_module(kind: str = "plain") -> Any:
    from lightning.pytorch import LightningModule

    class Plain(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(3)
            self.net = ll.models.create("resnet-20", widths=[4, 4, 8])
            self.seen: list[float] = []

        def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
            loss = F.cross_entropy(self.net(batch[0]), batch[1])
            self.seen.append(loss.item())
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.net.parameters(), lr=0.02, momentum=0.9)

    class Two(Plain):
        """By hand, with two optimisers that take turns: the critic makes two steps for one of the net."""

        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False
            self.critic = nn.Linear(10, 1)

        def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
            ours, critics = self.optimizers()
            for _ in range(2):
                critics.zero_grad()
                self.manual_backward(self.critic(self.net(batch[0]).detach()).square().mean())
                critics.step()
            ours.zero_grad()
            loss = F.cross_entropy(self.net(batch[0]), batch[1])
            self.manual_backward(loss)
            ours.step()
            self.seen.append(loss.item())

        def configure_optimizers(self) -> Any:
            critic = torch.optim.SGD(self.critic.parameters(), lr=0.01)
            return [super().configure_optimizers(), critic]

    return {"plain": Plain, "two": Two}[kind]()


def lightning_trainer(folder: Path, *callbacks: Any, **options: Any) -> Any:
    from lightning.pytorch import Trainer

    told = {"max_epochs": 1, "accelerator": "cpu", "logger": False, "enable_checkpointing": False} | options
    return Trainer(
        default_root_dir=folder,
        callbacks=list(callbacks),
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        **told,
    )


def lightning_callback(to: Path, **options: Any) -> Any:
    from leadline.integrations.lightning import RecorderCallback

    return RecorderCallback(to, **{"probes": PROBES, **options})


def fit(folder: Path, *callbacks: Any, kind: str = "plain", checkpoint: Path | None = None, **options: Any) -> Any:
    module = lightning_module(kind)
    trainer = lightning_trainer(folder, *callbacks, **options)
    trainer.fit(module, DataLoader(data(), batch_size=BATCH), ckpt_path=checkpoint, weights_only=False)
    return module, trainer


def same(ours: nn.Module, theirs: nn.Module) -> bool:
    pairs = zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_lightning_trains_the_same_and_readings_are_those_of_the_recorder(tmp_path: Path) -> None:
    bare, _ = fit(tmp_path)
    module, _ = fit(tmp_path, lightning_callback(tmp_path / "a"))
    assert module.seen == bare.seen and same(module, bare)
    assert not any(m._forward_hooks or m._forward_pre_hooks or m._backward_hooks for m in module.modules())
    run = read(tmp_path / "a")
    assert run.state == "done" and run.outcome["steps"] == STEPS
    assert list(losses_of(tmp_path / "a").values()) == bare.seen
    by_hand(tmp_path / "b")
    assert (tmp_path / "a" / "readings.jsonl").read_bytes() == (tmp_path / "b" / "readings.jsonl").read_bytes()


def by_hand(to: Path) -> None:
    """The same training in a loop of our own."""
    module = lightning_module()
    optimizer = module.configure_optimizers()
    module.train()
    with ll.Recorder(module.net, to, probes=PROBES, optimizer=optimizer, steps=STEPS) as recorder:
        for images, labels in DataLoader(data(), batch_size=BATCH):
            optimizer.zero_grad()
            loss = F.cross_entropy(module.net(images), labels)
            loss.backward()
            optimizer.step()
            recorder.step(loss)


def test_lightning_accumulates_clips_and_casts(tmp_path: Path) -> None:
    options = {"accumulate_grad_batches": 2, "gradient_clip_val": 0.5, "precision": "bf16-mixed"}
    bare, _ = fit(tmp_path, **options)
    module, _ = fit(tmp_path, lightning_callback(tmp_path / "a"), **options)
    assert module.seen == bare.seen and same(module, bare)
    recorded = losses_of(tmp_path / "a")
    assert len(recorded) == STEPS // 2
    for step, loss in recorded.items():
        assert loss == pytest.approx((bare.seen[2 * step] + bare.seen[2 * step + 1]) / 2, rel=1e-2)
    assert read(tmp_path / "a").readings.where(probe="gradient_norm_ratio", name="ratio", block=0).height == STEPS // 2


def test_lightning_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    from lightning.pytorch.callbacks import ModelCheckpoint

    whole, _ = fit(tmp_path, lightning_callback(tmp_path / "whole"), max_epochs=2)
    every = ModelCheckpoint(tmp_path / "kept", filename="{epoch}", save_top_k=-1)
    broken = [lightning_callback(tmp_path / "a"), every, raising(after=STEPS + 3)]
    with pytest.raises(ArithmeticError, match="enough"):
        fit(tmp_path, *broken, max_epochs=2, enable_checkpointing=True)
    assert read(tmp_path / "a").state == "dead" and len(losses_of(tmp_path / "a")) == STEPS + 3
    at = tmp_path / "kept" / "epoch=0.ckpt"
    rest, _ = fit(tmp_path, lightning_callback(tmp_path / "a"), checkpoint=at, max_epochs=2)
    assert rest.seen == whole.seen[STEPS:] and same(rest, whole)
    assert (tmp_path / "a" / "readings.jsonl").read_bytes() == (tmp_path / "whole" / "readings.jsonl").read_bytes()
    assert read(tmp_path / "a").state == "done"


def raising(*, after: int) -> Any:
    from lightning.pytorch import Callback

    class Raising(Callback):
        def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, index: int) -> None:
            if trainer.global_step == after:
                raise ArithmeticError("enough")

    return Raising()


def test_lightning_with_two_optimisers_records_the_part_it_is_told(tmp_path: Path) -> None:
    bare, _ = fit(tmp_path, kind="two")
    module, _ = fit(tmp_path, lightning_callback(tmp_path / "a", model="net"), kind="two")
    assert module.seen == bare.seen and same(module, bare)
    assert list(losses_of(tmp_path / "a").values()) == bare.seen
    with pytest.raises(UsageError, match="Two has no part 'generator'; expected one of net, critic"):
        fit(tmp_path, lightning_callback(tmp_path / "b", model="generator"), kind="two")


# -- Hugging Face ----------------------------------------------------------------------------------------------------


class Sentences(Dataset[dict[str, Tensor]]):
    """Random sentences of different lengths: what is padded counts for nothing."""

    def __init__(self, count: int = 32) -> None:
        generator = torch.Generator().manual_seed(7)
        self.words = torch.randint(3, 50, (count, 12), generator=generator)
        self.lengths = torch.randint(4, 13, (count,), generator=generator)

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        there = torch.arange(12) < self.lengths[place]
        return {"input_ids": self.words[place], "labels": torch.where(there, self.words[place], -100)}


def gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(2)
    sizes = {"n_layer": 3, "n_head": 2, "n_embd": 16, "vocab_size": 50, "n_positions": 16}
    return GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=1))


def hf_trained(
    folder: Path, *callbacks: Any, resume: str | None = None, **options: Any
) -> tuple[Any, dict[int, float]]:
    """The Trainer after training, and the losses it logged itself, step by step."""
    from transformers import Trainer, TrainingArguments

    told: dict[str, Any] = {
        "max_steps": STEPS,
        "per_device_train_batch_size": BATCH,
        "learning_rate": 1e-2,
        "save_strategy": "no",
    }
    arguments = TrainingArguments(
        output_dir=str(folder / "out"),
        use_cpu=True,
        logging_steps=1,
        report_to=[],
        disable_tqdm=True,
        seed=1,
        **told | options,
    )
    trainer = Trainer(model=gpt2(), args=arguments, train_dataset=Sentences(), callbacks=list(callbacks))
    trainer.train(resume_from_checkpoint=resume)
    return trainer, {entry["step"] - 1: entry["loss"] for entry in trainer.state.log_history if "loss" in entry}


def hf_callback(to: Path, **options: Any) -> Any:
    from leadline.integrations.transformers import RecorderCallback

    return RecorderCallback(to, **{"probes": PROBES, **options})


@pytest.mark.parametrize("options", [{}, {"gradient_accumulation_steps": 2}, {"bf16": True, "max_grad_norm": 0.1}])
def test_hugging_face_trains_the_same_and_has_readings(tmp_path: Path, options: dict[str, Any]) -> None:
    bare, logged = hf_trained(tmp_path, **options)
    trainer, again = hf_trained(tmp_path, hf_callback(tmp_path / "a"), **options)
    assert again == logged and same(trainer.model, bare.model)
    recorded = losses_of(tmp_path / "a")
    assert recorded.keys() == logged.keys()
    # the Trainer rounds what it logs
    assert all(math.isclose(recorded[step], logged[step], rel_tol=2e-3) for step in logged)
    run = read(tmp_path / "a")
    assert run.state == "done" and len(run.record["anatomy"]["blocks"]) >= 3
    ratios = run.readings.where(probe="gradient_norm_ratio", name="ratio")
    assert set(ratios["step"].tolist()) == set(range(STEPS))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in trainer.model.modules())


def test_hugging_face_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    whole, _ = hf_trained(tmp_path / "1", hf_callback(tmp_path / "whole"))
    saving = {"save_strategy": "steps", "save_steps": 4}
    hf_trained(tmp_path / "2", hf_callback(tmp_path / "a"), stops(after=6), **saving)
    assert len(losses_of(tmp_path / "a")) == 6
    resume = str(tmp_path / "2" / "out" / "checkpoint-4")
    rest, _ = hf_trained(tmp_path / "2", hf_callback(tmp_path / "a"), resume=resume, **saving)
    assert same(rest.model, whole.model)
    assert (tmp_path / "a" / "readings.jsonl").read_bytes() == (tmp_path / "whole" / "readings.jsonl").read_bytes()
    assert read(tmp_path / "a").state == "done"


def stops(*, after: int) -> Any:
    from transformers import TrainerCallback

    class Stops(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **found: Any) -> None:
            control.should_training_stop = state.global_step == after

    return Stops()


def failing_sink() -> Any:
    class Failing:
        def open(self, run: Path, record: Any) -> None: ...

        def log(self, step: int, scalars: Any) -> None:
            raise ConnectionError("the tracker is down")

        def close(self, outcome: Any) -> None: ...

    return Failing()


@pytest.mark.parametrize("which", ["lightning", "hugging face"])
def test_a_sink_that_fails_ends_nobodys_training(tmp_path: Path, which: str) -> None:
    makers: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "lightning": (fit, lightning_callback),
        "hugging face": (hf_trained, hf_callback),
    }
    train, callback = makers[which]
    train(tmp_path, callback(tmp_path / "a", sinks=[failing_sink()]))
    assert read(tmp_path / "a").state == "done" and len(losses_of(tmp_path / "a")) == STEPS
