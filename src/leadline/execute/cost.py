"""About how long a unit takes on one core, from the multiplications it asks for; for plans, not for claims."""

from functools import cache

import torch
from torch.utils.flop_counter import FlopCounterMode

from leadline.core.config import RunConfig
from leadline.core.errors import LeadlineError
from leadline.core.study import Unit
from leadline.models.names import resolve

# measured on one core of a current server; another machine differs by a small factor
FLOPS = {"fp32": 6e10, "bf16": 1.1e11, "fp64": 3e10}
SECONDS_PER_CALL = 4e-5
SAMPLES = {"mnist": 60_000, "fashion_mnist": 60_000, "cifar10": 50_000, "cifar100": 50_000, "imagenet": 1_281_167}
SHAPES = {"mnist": (1, 28, 28), "fashion_mnist": (1, 28, 28), "digits": (1, 8, 8), "imagenet": (3, 224, 224)}
DIGITS = 1437


def seconds(unit: Unit) -> float:
    """A study says it itself; a training takes its steps, forwards and backwards, without probes."""
    if not isinstance(unit, RunConfig):
        return unit.seconds
    part = unit.training
    samples = int(unit.data.args.get("train", SAMPLES.get(unit.data.name, DIGITS)))
    steps = part.steps or (part.epochs or 1) * max(1, samples // unit.data.batch_size)
    flops, calls = _forward(unit.model.model_dump_json(), unit.data.model_dump_json())
    step = 3 * flops * unit.data.batch_size / FLOPS[part.precision] + 3 * calls * SECONDS_PER_CALL
    return float(steps * step)


@cache
def _forward(model: str, data: str) -> tuple[float, int]:
    """Floating-point operations for one sample and module calls of a forward pass, on tensors without content."""
    config = RunConfig.model_validate({"model": _plain(model), "data": _plain(data)})
    shape = _shape(config)
    options = {"num_classes": 10, "in_channels": shape[0]}
    named = resolve(config.model.name)
    fitting = {key: value for key, value in options.items() if key in named.family.options and key not in named.preset}
    try:
        with torch.device("meta"):
            built = named.build(**fitting | config.model.args).eval()
            with FlopCounterMode(display=False) as counter, torch.no_grad():
                built(torch.empty(1, *shape))
    except (LeadlineError, RuntimeError, NotImplementedError):
        return 0.0, 0
    return float(counter.get_total_flops()), sum(1 for _ in built.modules())


def _plain(text: str) -> object:
    import json

    return json.loads(text)


def _shape(config: RunConfig) -> tuple[int, ...]:
    args = config.data.args
    if width := args.get("whiten") or args.get("width"):
        return (int(width),)
    if "shape" in args:
        shape = args["shape"]
        return (int(shape),) if isinstance(shape, int) else tuple(shape)
    channels, *sizes = SHAPES.get(config.data.name, (10,) if config.data.name == "teacher" else (3, 32, 32))
    return (channels, *(size // int(args.get("pool", 1)) for size in sizes))
