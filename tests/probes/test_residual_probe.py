"""Against numpy.linalg.lstsq on what plain hooks caught at the boundaries."""

import numpy as np
import pytest
import torch
from foreign import build
from probes.moment import foreign_moment, moment, read
from torch import Tensor, nn
from torch.nn import functional as F

from leadline import models
from leadline.probes.residual_probe import ResidualProbe, fit


def slowly(x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    columns = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    scores = columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
    return float(((y - scores) ** 2).sum() / len(x) / 2), scores


def test_every_boundary_of_a_network_with_batch_norm_in_evaluation_mode() -> None:
    torch.manual_seed(0)
    model = models.create("resnet-8").double()
    x, y = torch.randn(90, 3, 8, 8, dtype=torch.float64), torch.randint(0, 5, (90,))
    with torch.no_grad():
        model(x)
    found = read(ResidualProbe(samples=80), moment(model, x, y, F.cross_entropy))
    caught: list[Tensor] = []
    hooks = [
        model.get_submodule(name).register_forward_hook(lambda *a: caught.append(a[2])) for name in model.boundary_names
    ]
    with torch.no_grad():
        model.eval()(x[:80])
    for hook in hooks:
        hook.remove()
    for place, hidden in enumerate(caught):
        risk, scores = slowly(hidden.mean((2, 3)).numpy(), np.eye(5)[y[:80]])
        assert found["risk"].value[place] == pytest.approx(risk, rel=1e-9)
        assert found["accuracy"].value[place] == pytest.approx((scores.argmax(1) == y[:80].numpy()).mean())
    assert found["risk"].notes[-1] == "80 samples, eval mode"


def test_real_targets_tokens_and_too_few_samples() -> None:
    torch.manual_seed(0)

    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(2))

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = x + torch.tanh(layer(x))
            return x

    model, x, y = Tokens().double(), torch.randn(30, 4, 6, dtype=torch.float64), torch.randn(30, 2, dtype=torch.float64)
    found = read(ResidualProbe(), moment(model, x, y))
    assert "accuracy" not in found
    assert found["risk"].value[0] == pytest.approx(slowly(x.mean(1).numpy(), y.numpy())[0])
    few = read(ResidualProbe(), foreign_moment(build("preactivation")))
    assert few["accuracy"].notes[0] == "9 features on 2 samples predict anything"


def test_a_representation_that_holds_the_targets_is_read_out_exactly() -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 3, (40,), generator=generator)
    mixed = F.one_hot(y).double() @ torch.randn(3, 7, generator=generator, dtype=torch.float64)
    found = fit(mixed, y, 3)
    assert not isinstance(found, str) and found.accuracy == 1 and found.risk == pytest.approx(0, abs=1e-12)


def test_targets_it_cannot_use_are_named() -> None:
    model, x = models.create("resnest-fc-6"), torch.randn(40, 10)
    for y, why in ((None, "there are no targets"), (torch.zeros(40, 2, dtype=torch.long), "expected class numbers")):
        assert read(ResidualProbe(), moment(model, x, y))["risk"].notes[-1].startswith(why)
