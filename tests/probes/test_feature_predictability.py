"""Against numpy.linalg.lstsq on features that the models give by name, or that plain hooks caught."""

import numpy as np
import pytest
import torch
from foreign import build
from probes.moment import double, foreign_moment, moment, read
from torch import Tensor, nn

from leadline import models
from leadline.probes import Splits
from leadline.probes._features import Feature, Features, features
from leadline.probes.feature_predictability import FeaturePredictability, predictable


def pooled(v: Tensor) -> np.ndarray:
    return v.detach().flatten(2).mean(2).numpy() if v.ndim > 2 else v.detach().numpy()


def slowly(vs: list[np.ndarray]) -> list[float]:
    """1 - residual / deviation, one regression after the other."""
    found = []
    for place in range(1, len(vs)):
        columns = np.concatenate([np.ones((len(vs[0]), 1)), *vs[:place]], axis=1)
        left = vs[place] - columns @ np.linalg.lstsq(columns, vs[place], rcond=None)[0]
        found.append(1 - (left**2).sum() / ((vs[place] - vs[place].mean(0)) ** 2).sum())
    return found


@pytest.mark.parametrize(
    "name", ["resnest-fc-8", "resnest-conv-6", "a-resnest-fc-8", "densenest-fc-5", "resnest-wrn-16-1"]
)
def test_estimators_whose_features_have_names(name: str) -> None:
    torch.manual_seed(0)
    model = models.create(name).double()
    shape = (3, 8, 8) if "conv" in name or "wrn" in name else model.input_shape
    x = torch.randn(100 if "wrn" in name else 90, *shape, dtype=torch.float64)
    at = moment(model, x)
    found = read(FeaturePredictability(), at)["predictable"]
    with torch.no_grad():
        vs = [pooled(v) for v in model.eval().features(x).values()]
    measured = [value for value in found.value if value == value]
    limit = 3 if "wrn" in name else len(vs)
    assert measured[:limit] == pytest.approx(slowly(vs)[:limit], rel=1e-7)
    assert f"{len(x)} samples, eval mode" in found.notes[-1]


class Post(nn.Module):
    """y = relu(x + W relu(V x)), as in post-activation networks."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.two(torch.relu(self.one(x))))


def test_features_are_what_the_last_layers_weigh_in_anybodys_model() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 6), *(Post(6, 4) for _ in range(3)), nn.Linear(6, 2)).double()
    x = torch.randn(150, 3, dtype=torch.float64)
    caught = [x]
    hooks = [block.two.register_forward_pre_hook(lambda _, args: caught.append(args[0])) for block in model[1:4]]
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    at = moment(model, x)
    assert read(FeaturePredictability(), at)["predictable"].value == pytest.approx(slowly([pooled(v) for v in caught]))
    assert all(block.bent_by == ("relu",) for block in features(at, 150).blocks)


def test_a_projected_skip_has_a_z_and_two_branches_in_a_row_make_one_feature() -> None:
    foreign = double(build("preactivation"))
    found = features(foreign_moment(foreign), 2)
    assert [block.v.shape[1] for block in found.blocks] == [8, 8, 16, 16]
    assert [block.z is not None and block.z.shape[1] for block in found.blocks] == [False, False, 8, False]
    assert [block.v.shape[1] for block in features(foreign_moment(build("gpt2")), 2).blocks] == [32 + 128] * 3


def test_a_feature_that_is_a_linear_map_of_earlier_ones_is_fully_predictable() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randn(50, 4, generator=generator) for _ in range(2))
    blocks = [Feature(second), Feature(2 * first - second + 1), "no feature", Feature(torch.randn(50, 60))]
    answers = predictable(Features(first, blocks, [], {}, 0.0))
    assert answers[1] == pytest.approx(1) and answers[0] < 0.3 and answers[2] == "no feature"
    short = predictable(Features(first[:9], [Feature(second[:9])] * 2, [], {}, 0.0))
    assert short[0] > 0 and short[1] == "9 features on 9 samples predict anything"


def test_samples_come_from_the_training_split_where_there_is_one() -> None:
    torch.manual_seed(0)
    model = models.create("resnest-fc-6")
    batches = [(torch.randn(40, 10), torch.randint(0, 10, (40,))) for _ in range(5)]
    at = moment(model, torch.randn(3, 10))
    object.__setattr__(at, "splits", Splits(train=batches, test=[]))
    found = read(FeaturePredictability(samples=100), at)["predictable"]
    assert found.notes[-1] == "100 samples, eval mode"
    with torch.no_grad():
        x = torch.cat([inputs for inputs, _ in batches])[:100]
        vs = [pooled(v).astype(float) for v in model.eval().features(x).values()]
    assert found.value == pytest.approx(slowly(vs), rel=1e-4)


def test_models_without_residual_features_say_so() -> None:
    for name, why in {"mlp": "a plain block", "unet": "a plain block", "densenet121": "it concatenates"}.items():
        assert read(FeaturePredictability(), foreign_moment(build(name)))["predictable"].notes[0].startswith(why)
