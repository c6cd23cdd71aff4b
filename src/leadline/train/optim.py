"""Optimisers and learning-rate schedules from their configuration."""

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from leadline.core import config

Rate = Callable[[int], float]


def build(part: config.Optimizer, model: nn.Module) -> Optimizer:
    """The optimiser over all parameters that want a gradient."""
    groups = decay_groups(model, part.weight_decay, decay_norms=part.decay_norms)
    match part.name:
        case "sgd":
            return SGD(groups, lr=part.lr, momentum=part.momentum, nesterov=part.nesterov)
        case "adam":
            return Adam(groups, lr=part.lr, betas=part.betas)
        case "adamw":
            return AdamW(groups, lr=part.lr, betas=part.betas)


def decay_groups(model: nn.Module, weight_decay: float, *, decay_norms: bool) -> list[dict[str, object]]:
    """One group with decay; with `decay_norms` off, vectors (norm gains, biases) stand in a second one without."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if decay_norms:
        return [{"params": parameters, "weight_decay": weight_decay}]
    matrices = [parameter for parameter in parameters if parameter.ndim > 1]
    vectors = [parameter for parameter in parameters if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def rate(part: config.Schedule, *, base: float, steps: int, steps_per_epoch: int) -> Rate:
    """The learning rate as a function of the step alone, so that resuming needs no state.

    step: base * factor^(milestones passed). cosine: base * (1 + cos(pi t)) / 2. one-cycle: linear from base / 25 to
    base over the first 30 %, then cosine to base / 250,000 (Smith and Topin's shape with torch's defaults).
    """
    warm = round(part.warmup * steps_per_epoch)
    marks = [round(milestone * steps_per_epoch) for milestone in part.milestones]

    def shape(step: int) -> float:
        t = (step - warm) / max(1, steps - warm)
        match part.name:
            case "constant":
                return 1.0
            case "step":
                return part.factor ** sum(step >= mark for mark in marks)
            case "cosine":
                return 0.5 * (1 + math.cos(math.pi * t))
            case "one-cycle":
                return _one_cycle(t)

    return lambda step: base * ((step + 1) / warm if step < warm else shape(step))


def _one_cycle(t: float, *, rise: float = 0.3, start: float = 1 / 25, end: float = 1 / 250_000) -> float:
    if t < rise:
        return start + (1 - start) * t / rise
    return end + (1 - end) * 0.5 * (1 + math.cos(math.pi * (t - rise) / (1 - rise)))


def set_rate(optimizer: Optimizer, value: float) -> None:
    """Gives every group the same learning rate."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(value)
        else:
            group["lr"] = value
