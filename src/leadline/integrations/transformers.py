"""A callback for the Hugging Face Trainer that records a run as `ll.Recorder` does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from leadline.integrations._needs import needs
from leadline.taps.inputs import eager
from leadline.train.recorder import Recorder

needs("transformers", "transformers")

from transformers import TrainerCallback  # noqa: E402


class RecorderCallback(TrainerCallback):  # type: ignore[misc]
    """`Trainer(callbacks=[RecorderCallback("runs/a")])`; `options` are those of `ll.Recorder`.

    The recorded loss is the one in the model's output, over all batches that were accumulated for a step. A training
    that goes on from a checkpoint goes on in its folder at the checkpoint's step.
    """

    def __init__(self, to: str | Path, **options: Any) -> None:
        self.to, self.options = Path(to), options
        self.recorder: Recorder | None = None
        self._losses: list[Tensor] = []
        self._summed = False
        self._inside = 0
        self._listening: list[RemovableHandle] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **found: Any) -> None:  # noqa: ARG002
        self._let_go()
        model, optimizer = eager(found["model"]), found.get("optimizer")
        known = {
            "optimizer": getattr(optimizer, "optimizer", optimizer),
            "scaler": getattr(optimizer, "scaler", None),
            "start": state.global_step,
            "steps": state.max_steps or None,
        }
        self._listening = [
            model.register_forward_pre_hook(self._begin_pass, prepend=True),
            model.register_forward_hook(self._note_loss, with_kwargs=True),
        ]
        self.recorder = Recorder(model, self.to, **known | self.options).attach()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **found: Any) -> None:  # noqa: ARG002
        """The update is made, its gradients are still there."""
        if self.recorder is not None:
            self.recorder.step(self._loss())
        self._losses = []

    def on_train_end(self, args: Any, state: Any, control: Any, **found: Any) -> None:  # noqa: ARG002
        if self.recorder is not None:
            self.recorder.detach()
        self._let_go()

    def _begin_pass(self, *_: Any) -> None:
        self._inside += 1

    def _note_loss(self, _: nn.Module, __: Any, kwargs: Mapping[str, Any], output: Any) -> None:
        """Keeps the loss of a pass that is trained on; the Trainer's divisor makes those of a step add up."""
        self._inside -= 1
        loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
        if not self._inside and torch.is_grad_enabled() and isinstance(loss, Tensor):  # no pass of the recorder's own
            self._losses.append(loss.detach().mean())
            self._summed = kwargs.get("num_items_in_batch") is not None

    def _loss(self) -> Tensor | float:
        if not self._losses:
            return float("nan")
        losses = torch.stack(self._losses)
        return losses.sum() if self._summed else losses.mean()

    def _let_go(self) -> None:
        """Leaves the model; a run that was not ended can be gone on with."""
        if self.recorder is not None:
            self.recorder.__exit__(KeyboardInterrupt, None, None)
        for handle in self._listening:
            handle.remove()
        self.recorder, self._listening, self._losses, self._inside = None, [], [], 0
