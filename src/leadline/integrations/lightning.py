"""A Lightning callback that records a run as `ll.Recorder` does, in whatever way the Trainer trains."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from leadline.core.errors import UsageError
from leadline.integrations._needs import needs
from leadline.train.recorder import Recorder

needs("lightning", "lightning")

from lightning.pytorch import Callback, LightningModule, Trainer  # noqa: E402


class RecorderCallback(Callback):  # type: ignore[misc]
    """`Trainer(callbacks=[RecorderCallback("runs/a")])`; `options` are those of `ll.Recorder`.

    Accumulated batches, loss scales, precision plugins and several processes are taken from the Trainer. `model` names
    the part of the LightningModule to record when it has several with parameters, `"generator"` for example; with
    several optimisers a step is one of that part's. A run that goes on from a checkpoint goes on in its folder.
    """

    def __init__(self, to: str | Path, *, model: str | None = None, **options: Any) -> None:
        self.to, self.model, self.options = Path(to), model, options
        self.recorder: Recorder | None = None
        self._start = 0
        self._seen = 0
        self._stepped = False
        self._waiting: list[Tensor] = []
        self._own: list[Tensor] = []
        self._unhook: list[Callable[[], None]] = []

    # -- the run -----------------------------------------------------------------------------------------------------

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._let_go(None)
        model = _part(pl_module, self.model)
        found = {"scaler": _scaler(trainer), "start": self._start, "steps": _steps(trainer, pl_module)}
        owned = {id(parameter) for parameter in model.parameters()}
        for optimizer in trainer.optimizers:
            own = any(id(p) in owned for group in optimizer.param_groups for p in group["params"])
            self._unhook.append(optimizer.register_step_post_hook(partial(self._made_step, own)).remove)
            if own:
                found["optimizer"] = optimizer
        self.recorder = Recorder(model, self.to, **found | self.options).attach()
        self._seen = trainer.global_step

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:  # noqa: ARG002
        scaler = _scaler(trainer)
        self._waiting.append(loss.detach() / (1.0 if scaler is None else scaler.get_scale()))

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,  # noqa: ARG002
        batch: Any,  # noqa: ARG002
        batch_idx: int,  # noqa: ARG002
    ) -> None:
        """Records if an update was made, or skipped by the loss scaler; its gradients are still there."""
        counted, self._seen = trainer.global_step != self._seen, trainer.global_step
        if self.recorder is None or not (counted if pl_module.automatic_optimization else self._stepped):
            return
        losses = self._own + (self._waiting if not self._stepped else [])
        self._own, self._waiting, self._stepped = [], [], False
        self.recorder.step(torch.stack(losses).sum() if losses else float("nan"))

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        if self.recorder is not None:
            self.recorder.detach()
        self._let_go(None)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:  # noqa: ARG002
        self._let_go(exception)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:  # noqa: ARG002
        self._let_go(None)

    # -- going on from a checkpoint ----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.recorder.steps if self.recorder is not None else self._start}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._start = int(state_dict["steps"])

    # ----------------------------------------------------------------------------------------------------------------

    def _made_step(self, own: bool, *_: Any) -> None:
        """An optimiser has stepped; the losses since the last one that did were its."""
        if own:
            self._own += self._waiting
            self._stepped = True
        self._waiting = []

    def _let_go(self, error: BaseException | None) -> None:
        if self.recorder is not None:
            self._start = self.recorder.steps
            self.recorder.__exit__(KeyboardInterrupt if error is None else type(error), error, None)
        self.recorder = None
        while self._unhook:
            self._unhook.pop()()


def _part(module: nn.Module, name: str | None) -> nn.Module:
    """The named part; else the only child with parameters, or the module as a whole if its forward has several."""
    if name is not None:
        try:
            return module.get_submodule(name)
        except AttributeError:
            choices = ", ".join(child for child, _ in module.named_children())
            raise UsageError(f"{type(module).__name__} has no part {name!r}; expected one of {choices}") from None
    trained = [child for child in module.children() if any(p.requires_grad for p in child.parameters())]
    own = any(p.requires_grad for p in module.parameters(recurse=False))
    return trained[0] if len(trained) == 1 and not own else module


def _scaler(trainer: Trainer) -> Any:
    return getattr(trainer.precision_plugin, "scaler", None)


def _steps(trainer: Trainer, module: LightningModule) -> int | None:
    """How many steps there will be, where the Trainer knows."""
    expected = trainer.estimated_stepping_batches if module.automatic_optimization else float("inf")
    return int(expected) if expected != float("inf") and expected > 0 else None
