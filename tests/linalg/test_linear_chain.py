"""Linear n-shortcut nets from moments against the same nets run on samples through autograd; Theorem 2 at zero."""

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg.hessian import dense_hessian, spectrum
from leadline.linalg.linear_chain import (
    Moments,
    descend,
    end_to_end,
    hessian,
    loss,
    loss_and_gradient,
    pad,
    zero_condition,
    zero_eigenvalues,
    zero_hessian,
)

WIDTH = 3


def samples(width: int = WIDTH, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(2, 40, width, generator=draw, dtype=torch.float64).unbind()


def draw_chain(layers: int, *, scale: float = 0.5, seed: int = 1) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return scale * torch.randn(layers, WIDTH, WIDTH, generator=draw, dtype=torch.float64)


def loss_on_samples(weights: Tensor, x: Tensor, y: Tensor, shortcut: int) -> Tensor:
    """(1/2m) sum |y - net(x)|^2, unit by unit, the slow obvious way."""
    for start in range(0, len(weights), shortcut or len(weights)):
        hidden = x
        for layer in weights[start : start + (shortcut or len(weights))]:
            hidden = hidden @ layer.T
        x = x + hidden if shortcut else hidden
    return ((y - x) ** 2).sum() / (2 * len(y))


@pytest.mark.parametrize("shortcut", [0, 1, 2, 3, 4])
def test_loss_gradient_and_hessian_match_autograd_on_the_samples(shortcut: int) -> None:
    x, y = samples()
    moments, weights = Moments.of(x, y), draw_chain(12)
    leaf = weights.clone().requires_grad_()
    expected = loss_on_samples(leaf, x, y, shortcut)
    (slope,) = torch.autograd.grad(expected, leaf)
    value, grads = loss_and_gradient(weights, moments, shortcut=shortcut)
    assert float(value) == pytest.approx(float(expected.detach()), rel=1e-12)
    assert torch.allclose(loss(weights, moments, shortcut=shortcut), value)
    assert torch.allclose(grads, slope, rtol=1e-10, atol=1e-13 * float(slope.abs().max()))
    slow = dense_hessian(lambda w: loss_on_samples(w, x, y, shortcut), weights)
    fast = hessian(weights, moments, shortcut=shortcut)
    assert torch.allclose(fast, slow, rtol=0, atol=1e-13 * float(slow.abs().max()))


def test_a_batch_is_its_nets_one_by_one() -> None:
    moments = Moments.of(*samples())
    batch = torch.stack([draw_chain(4, seed=seed) for seed in range(6)]).reshape(2, 3, 4, WIDTH, WIDTH)
    value, grads = loss_and_gradient(batch, moments, shortcut=2)
    curved = hessian(batch, moments, shortcut=2)
    assert (value.shape, curved.shape) == ((2, 3), (2, 3, 36, 36))
    for place in [(0, 0), (1, 2)]:
        one, slope = loss_and_gradient(batch[place], moments, shortcut=2)
        assert torch.allclose(value[place], one) and torch.allclose(grads[place], slope)
        assert torch.allclose(curved[place], hessian(batch[place], moments, shortcut=2), atol=1e-13)


@pytest.mark.parametrize("shortcut", [0, 1, 2])
def test_padding_changes_nothing(shortcut: int) -> None:
    moments = Moments.of(*samples())
    chains = [draw_chain(layers, seed=layers) for layers in (2, 6, 4)]
    weights, real = pad(chains, shortcut=shortcut)
    rate = torch.tensor([0.02, 0.01, 0.03], dtype=torch.float64)
    together = descend(weights, moments, shortcut=shortcut, rate=rate, steps=20, real=real)
    curved = hessian(together.weights, moments, shortcut=shortcut, real=real)
    for net, chain in enumerate(chains):
        alone = descend(chain, moments, shortcut=shortcut, rate=float(rate[net]), steps=20)
        assert torch.allclose(together.losses[:, net], alone.losses)
        assert torch.allclose(together.weights[net, : len(chain)], alone.weights)
        assert torch.equal(together.weights[net, len(chain) :], weights[net, len(chain) :])
        size = chain.numel()
        assert torch.allclose(curved[net, :size, :size], hessian(alone.weights, moments, shortcut=shortcut), atol=1e-12)
        assert not curved[net, size:].any() and not curved[net, :, size:].any()


def test_descent_is_gradient_descent_on_the_samples() -> None:
    x, y = samples()
    weights = leaf = draw_chain(6, scale=0.1)
    for _ in range(30):
        leaf = leaf.detach().requires_grad_()
        (slope,) = torch.autograd.grad(loss_on_samples(leaf, x, y, 2), leaf)
        leaf = leaf - 0.05 * slope
    run = descend(weights, Moments.of(x, y), shortcut=2, rate=0.05, steps=30)
    assert torch.allclose(run.weights, leaf.detach(), atol=1e-12)
    assert run.losses.shape == (31,) and bool((run.losses.diff() < 0).all())


def test_descent_reaches_the_lowest_loss_and_says_when_it_diverges() -> None:
    moments = Moments.of(*samples())
    weights = torch.stack([draw_chain(4, scale=0.3)] * 2)
    run = descend(weights, moments, shortcut=2, rate=torch.tensor([0.1, 1e3], dtype=torch.float64), steps=3000)
    assert run.diverged.tolist() == [False, True]
    assert float(run.losses[-1, 0]) == pytest.approx(float(moments.lowest_loss), rel=1e-6)


def test_lowest_loss_is_least_squares_also_for_degenerate_inputs() -> None:
    x, y = samples()
    x = torch.cat([x[:, :2], x[:, :1]], dim=1)
    fitted = x @ torch.linalg.lstsq(x, y, driver="gelsd").solution
    expected = float(((y - fitted) ** 2).sum()) / (2 * len(y))
    assert float(Moments.of(x, y).lowest_loss) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("shortcut", "units"), [(1, 1), (1, 4), (2, 1), (2, 5), (3, 2), (4, 2)])
def test_theorem_2_is_the_hessian_at_zero(shortcut: int, units: int) -> None:
    moments = Moments.of(*samples())
    zero = torch.zeros(shortcut * units, WIDTH, WIDTH, dtype=torch.float64)
    expected = hessian(zero, moments, shortcut=shortcut)
    assert torch.allclose(zero_hessian(moments, shortcut=shortcut, units=units), expected, atol=1e-15)
    if shortcut >= 3:
        assert not expected.any()
        assert not loss_and_gradient(zero, moments, shortcut=shortcut)[1].any()


@pytest.mark.parametrize("units", [1, 3, 8])
def test_two_shortcut_spectrum_and_condition_do_not_depend_on_depth(units: int) -> None:
    moments = Moments.of(*samples())
    found = torch.linalg.eigvalsh(zero_hessian(moments, shortcut=2, units=units))
    assert torch.allclose(found, zero_eigenvalues(moments.distance, units=units), atol=1e-14)
    reading = spectrum(zero_hessian(moments, shortcut=2, units=units))
    assert reading.condition.kappa == pytest.approx(zero_condition(moments.distance).kappa, rel=1e-12)
    assert reading.index == 0.5


def test_two_shortcut_eigenvalues_carry_activations() -> None:
    """mid = tanh(2 .), pre = tanh: Sigma_X,pre(X) - Sigma_Y,pre(X) and mid'(0) = 2, against autograd at zero."""
    x, y = samples()

    def activated(weights: Tensor) -> Tensor:
        out = x
        for first, second in weights.reshape(-1, 2, WIDTH, WIDTH):
            out = out + torch.tanh(2 * torch.tanh(out) @ first.T) @ second.T
        return ((y - out) ** 2).sum() / (2 * len(y))

    found = torch.linalg.eigvalsh(dense_hessian(activated, torch.zeros(4, WIDTH, WIDTH, dtype=torch.float64)))
    distance = (x - y).T @ torch.tanh(x) / len(x)
    assert torch.allclose(found, zero_eigenvalues(distance, units=2, gain=2.0), atol=1e-14)


def test_one_shortcut_condition_grows_with_depth() -> None:
    x, y = samples()
    white = Moments(torch.eye(WIDTH, dtype=torch.float64), Moments.of(x, y).yx, Moments.of(x, y).yy)
    kappas = [spectrum(zero_hessian(white, shortcut=1, units=units)).condition.kappa for units in (1, 2, 4, 8)]
    assert kappas[0] == pytest.approx(1.0)
    assert all(later > 1.5 * earlier for earlier, later in pairwise(kappas))


def test_near_zero_the_spectrum_is_near_the_closed_form() -> None:
    moments = Moments.of(*samples())
    near = spectrum(hessian(draw_chain(8, scale=1e-5), moments, shortcut=2))
    closed = zero_eigenvalues(moments.distance, units=4)
    assert torch.allclose(near.eigenvalues, closed, atol=1e-3)
    assert near.ratio10 == pytest.approx(float(closed.abs().max() / torch.quantile(closed.abs(), 0.1)), rel=1e-3)


def test_end_to_end_map_and_single_precision() -> None:
    weights = draw_chain(2)
    assert torch.allclose(end_to_end(weights, shortcut=2), weights[1] @ weights[0] + torch.eye(WIDTH))
    single = hessian(weights.float(), Moments.of(*samples()), shortcut=2)
    double = hessian(weights, Moments.of(*samples()), shortcut=2)
    assert single.dtype == torch.float32 and torch.allclose(single.double(), double, atol=1e-5)


@pytest.mark.parametrize(
    ("weights", "shortcut", "message"),
    [
        (torch.zeros(5, 3, 3), 2, r"whole units of shortcut >= 1, or 0 for none; got 5 and 2"),
        (torch.zeros(4, 3, 3), -1, r"got 4 and -1"),
        (torch.zeros(0, 3, 3), 0, r"got 0 and 0"),
        (torch.zeros(4, 3, 2), 2, r"expected weights \(\.\.\., layers, d, d\); got \(4, 3, 2\) of torch\.float32"),
        (torch.zeros(4, 3, 3, dtype=torch.int64), 2, r"got \(4, 3, 3\) of torch\.int64"),
    ],
)
def test_misuse_is_one_line(weights: Tensor, shortcut: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hessian(weights, Moments.of(*samples()), shortcut=shortcut)


def test_bad_samples_are_refused_and_nan_stays_nan() -> None:
    with pytest.raises(UsageError, match=r"got \(4, 3\) and \(4, 2\)"):
        Moments.of(torch.ones(4, 3), torch.ones(4, 2))
    with pytest.raises(UsageError, match=r"expected samples"):
        Moments.of(torch.ones(0, 3), torch.ones(0, 3))
    with pytest.raises(UsageError, match=r"chains \(layers, d, d\) of one width; got \[\]"):
        pad([], shortcut=2)
    with pytest.raises(UsageError, match=r"got \[\(2, 3, 3\), \(2, 4, 4\)\]"):
        pad([torch.zeros(2, 3, 3), torch.zeros(2, 4, 4)], shortcut=2)
    with pytest.raises(UsageError, match="at least one layer per unit"):
        zero_hessian(Moments.of(*samples()), shortcut=0, units=2)
    reading = spectrum(hessian(torch.full((2, WIDTH, WIDTH), math.nan), Moments.of(*samples()), shortcut=2))
    assert reading.note == "not finite"
