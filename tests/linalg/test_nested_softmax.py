"""Softmax heads on every prefix against one long scipy fit each; the certificate holds; separable data are named."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg.nested_fit import Batch, FeatureGram, factorise, feature_gram
from leadline.linalg.nested_softmax import softmax_prefixes

WIDTHS = (6, 4, 5)
COUNT, CLASSES = 400, 3
Problem = tuple[Callable[[], list[Batch]], FeatureGram, Tensor, Tensor]


def problem(*, noise: float = 1.0, dtype: torch.dtype = torch.float64, seed: int = 0) -> Problem:
    """(batches, their moments, the stacked features with the constant, labels)."""
    draw = torch.Generator().manual_seed(seed)
    blocks = [torch.randn(COUNT, width, generator=draw, dtype=torch.float64) + 1 for width in WIDTHS]
    score = torch.cat(blocks, 1) @ torch.randn(sum(WIDTHS), CLASSES, generator=draw, dtype=torch.float64)
    labels = (score + noise * torch.randn(score.shape, generator=draw, dtype=torch.float64)).argmax(1)
    blocks = [block.to(dtype) for block in blocks]

    def batches() -> list[Batch]:
        return [([block[i : i + 150] for block in blocks], labels[i : i + 150]) for i in range(0, COUNT, 150)]

    v = torch.cat([torch.ones(COUNT, 1, dtype=dtype), *blocks], 1).double()
    return batches, feature_gram(batches(), classes=CLASSES), v, labels


def slow_objective(v: Tensor, labels: Tensor, end: int, ridge: float) -> float:
    """The least (1/N) sum CE + (ridge/2) |V H|^2 / N over H by scipy, in float64."""
    part = v[:, :end]

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        head = torch.from_numpy(flat).view(end, CLASSES).requires_grad_()
        logits = part @ head
        total = torch.nn.functional.cross_entropy(logits, labels) + ridge / 2 * logits.square().sum() / len(v)
        (slope,) = torch.autograd.grad(total, head)
        return float(total.detach()), slope.flatten().numpy()

    options = {"maxiter": 5000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-9}
    return float(minimize(value, np.zeros(end * CLASSES), jac=True, method="L-BFGS-B", options=options).fun)


@pytest.mark.parametrize("ridge", [1e-3, 1e-1])
def test_every_prefix_reaches_the_objective_of_its_own_fit(ridge: float) -> None:
    batches, moments, v, labels = problem()
    fits = softmax_prefixes(batches, moments, ridge=ridge, tolerance=1e-7)
    assert all(fits.converged)
    for prefix, end in enumerate(moments.ends):
        expected = slow_objective(v, labels, end, ridge)
        assert fits.objective[prefix] == pytest.approx(expected, abs=1e-9)
        assert fits.lower_bound[prefix] <= expected + 1e-12
        logits = v @ fits.heads[prefix]
        assert fits.risk[prefix] == pytest.approx(float(torch.nn.functional.cross_entropy(logits, labels)), rel=1e-12)
        assert not fits.heads[prefix][end:].any()
    assert list(fits.objective) == sorted(fits.objective, reverse=True)


@pytest.mark.parametrize("passes", [1, 3, 6])
def test_the_certificate_holds_for_fits_that_stopped_early(passes: int) -> None:
    batches, moments, v, labels = problem()
    fits = softmax_prefixes(batches, moments, ridge=1e-2, tolerance=1e-9, passes=passes)
    assert not any(fits.converged)
    for prefix, end in enumerate(moments.ends):
        least = slow_objective(v, labels, end, 1e-2)
        assert fits.lower_bound[prefix] <= least <= fits.objective[prefix]
        assert fits.lower_bound[prefix] == pytest.approx(
            fits.objective[prefix] - fits.gradient_norm[prefix] ** 2 / (2 * 1e-2), rel=1e-12
        )


def test_the_risk_bound_holds_for_any_head() -> None:
    batches, moments, v, labels = problem()
    fits = softmax_prefixes(batches, moments, ridge=1e-2, tolerance=1e-6)
    for seed in range(20):
        head = torch.randn(v.shape[1], CLASSES, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        for scale in (0.1, 1.0):
            logits = scale * v @ head
            risk = float(torch.nn.functional.cross_entropy(logits, labels))
            assert risk >= fits.risk_bound(2, float(logits.square().sum(1).mean()))


def test_separable_data_are_recognised_prefix_by_prefix() -> None:
    batches, moments, _, _ = problem(noise=0.0)
    fits = softmax_prefixes(batches, moments, ridge=1e-6, tolerance=1e-5)
    assert fits.separable == (False, False, True)
    assert fits.risk[2] < 0.05 < fits.risk[1]
    assert softmax_prefixes(*problem(noise=2.0)[:2]).separable == (False, False, False)


def test_all_zero_logits_separate_nothing() -> None:
    batches, moments, _, _ = problem(noise=0.0)
    fits = softmax_prefixes(batches, moments, ridge=1e9)
    assert fits.separable == (False, False, False) and fits.risk[2] == pytest.approx(math.log(CLASSES), rel=1e-6)


def test_single_precision_sweeps_end_with_a_double_precision_certificate() -> None:
    batches, moments, v, labels = problem(dtype=torch.float32)
    fits = softmax_prefixes(batches, moments, ridge=1e-3)
    assert fits.dtype == "float32" and all(fits.converged)
    for prefix, end in enumerate(moments.ends):
        least = slow_objective(v, labels, end, 1e-3)
        assert fits.lower_bound[prefix] <= least <= fits.objective[prefix] + 1e-12
        assert fits.objective[prefix] - fits.lower_bound[prefix] <= 2e-5 + 1e-12


def test_predictable_features_change_nothing() -> None:
    batches, moments, _, _ = problem()

    def doubled() -> list[Batch]:
        return [([*blocks, blocks[0] @ torch.ones(6, 2, dtype=torch.float64)], labels) for blocks, labels in batches()]

    more = feature_gram(doubled(), classes=CLASSES)
    assert factorise(more).ranks == (7, 11, 16, 16)
    fits = softmax_prefixes(doubled, more, ridge=1e-2, tolerance=1e-6)
    assert fits.objective[3] == pytest.approx(fits.objective[2], rel=1e-10)
    assert fits.objective[:3] == pytest.approx(softmax_prefixes(batches, moments, ridge=1e-2, tolerance=1e-6).objective)


def test_too_many_classes_are_refused_before_the_first_sweep() -> None:
    features, labels = [torch.randn(20, 1) for _ in range(60)], torch.zeros(20, dtype=torch.int64)
    moments = feature_gram([(features, labels)], classes=400_000)
    with pytest.raises(UsageError, match=r"softmax heads of 400,000 classes on 60 prefixes of 20 features needs .* GB"):
        softmax_prefixes(lambda: pytest.fail("swept"), moments)


def test_misuse_is_one_line() -> None:
    batches, moments, _, _ = problem()
    with pytest.raises(UsageError, match=r"a ridge above 0, the certificate divides by it; got 0"):
        softmax_prefixes(batches, moments, ridge=0.0)
    with pytest.raises(UsageError, match="expected 400 samples in every sweep, as in the Gram; got 150"):
        softmax_prefixes(lambda: batches()[:1], moments)
    with pytest.raises(UsageError, match=r"expected integer labels \(150,\); got \(150, 3\), torch.float64"):
        softmax_prefixes(lambda: [(f, torch.eye(3, dtype=torch.float64)[y]) for f, y in batches()], moments)
