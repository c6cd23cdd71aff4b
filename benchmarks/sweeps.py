"""What a sweep of condition numbers over a whole model costs, in training steps at batch 128 of the same model."""

import torch
from harness import Row, interleave, ratio_row, run
from torch.nn import functional

from leadline import models
from leadline.models.chain import Chain
from leadline.probes import Moment, Probe, layers
from leadline.probes.hidden_condition import HiddenCondition
from leadline.probes.operator_condition import OperatorCondition
from leadline.probes.weight_condition import WeightCondition
from leadline.taps.anatomy import anatomy
from leadline.taps.inputs import Inputs
from leadline.taps.tape import Heard

WEIGHTS = "one Gram stack per shape and mode; conjugate frequencies and Fourier transforms left out; 1x1 is one matrix"
HIDDEN = "N x N Gram matrices inside the forward pass instead of n x N decompositions after it"


class Step:
    """Forward, backward and update on 128 images."""

    def __init__(self, model: Chain) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
        self.images, self.labels = torch.randn(128, 3, 32, 32), torch.randint(10, (128,))

    def __call__(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(self.model(self.images), self.labels).backward()
        self.optimizer.step()


class Sweep:
    """The probes' readings of a model, on 256 images where they look at data."""

    def __init__(self, model: Chain, *probes: Probe) -> None:
        self.probes = probes
        images = torch.randn(256, 3, 32, 32)
        self.moment = Moment(
            step=0,
            model=model,
            anatomy=anatomy(model, images[:2]),
            inputs=Inputs((images,)),
            loss_fn=None,
            loss=0.0,
            heard=Heard({}, {}),
        )

    def __call__(self) -> None:
        for probe in self.probes:
            list(probe.read(self.moment))


def measure(rounds: int) -> list[Row]:
    torch.manual_seed(0)
    deep, basic = models.create("resnet-164"), models.create("resnet-110")
    deep_step, basic_step = Step(deep), Step(basic)
    weights, operators = Sweep(deep, WeightCondition()), Sweep(deep, OperatorCondition())
    hidden = Sweep(basic, HiddenCondition(samples=256))
    sides = {
        "step of ResNet-164": deep_step,
        "weights": weights,
        "operators": operators,
        "both": Sweep(deep, WeightCondition(), OperatorCondition()),
        "step of ResNet-110": basic_step,
        "hidden": hidden,
    }
    times = interleave(sides, rounds=rounds)
    boundaries = len(hidden.moment.anatomy.boundaries)
    parts = ", ".join(f"{name} {times[name].median:.2f} s" for name in ("weights", "operators"))
    return [
        ratio_row(
            f"weight_condition + operator_condition of {len(layers(deep))} layers, ResNet-164",
            top=times["both"],
            bottom=times["step of ResNet-164"],
            bar=2,
            at_most=True,
            note=f"{parts}, step {times['step of ResNet-164'].median:.2f} s; {WEIGHTS}",
        ),
        ratio_row(
            f"hidden_condition of {boundaries} boundaries on 256 samples, ResNet-110",
            top=times["hidden"],
            bottom=times["step of ResNet-110"],
            bar=4,
            at_most=True,
            note=f"step {times['step of ResNet-110'].median:.2f} s; {HIDDEN}",
        ),
    ]


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=5)
