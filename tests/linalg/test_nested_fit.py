"""Heads on every prefix from one factorisation against one lstsq per prefix."""

import pytest
import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg.nested_fit import (
    FeatureGram,
    factorise,
    feature_gram,
    least_squares_prefixes,
    prefix_objectives,
)

WIDTHS = (5, 4, 6, 3)
COUNT = 300


def features(*, seed: int = 0) -> list[Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(COUNT, width, generator=draw, dtype=torch.float64) + 0.5 for width in WIDTHS]


def targets(outputs: int = 2) -> Tensor:
    return torch.randn(COUNT, outputs, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def streamed(blocks: list[Tensor], y: Tensor, *, size: int = 128) -> list[tuple[list[Tensor], Tensor]]:
    return [([block[i : i + size] for block in blocks], y[i : i + size]) for i in range(0, len(y), size)]


def slow(
    blocks: list[Tensor], y: Tensor, prefix: int, *, bias: bool = True, ridge: float = 0.0
) -> tuple[float, Tensor]:
    """(risk, fitted values) of one prefix by lstsq on the stacked (and ridge-extended) system."""
    columns = [torch.ones(COUNT, 1, dtype=torch.float64)] * bias + blocks[: prefix + 1]
    v = torch.cat(columns, dim=1)
    damped = torch.cat([v, (COUNT * ridge) ** 0.5 * torch.eye(v.shape[1], dtype=torch.float64)])
    wanted = torch.cat([y, y.new_zeros(v.shape[1], y.shape[1])])
    fitted = v @ torch.linalg.lstsq(damped, wanted, driver="gelsd").solution
    return float(((y - fitted) ** 2).sum()) / (2 * COUNT), fitted


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 0.03])
def test_every_prefix_is_its_own_least_squares_fit(bias: bool, ridge: float) -> None:
    blocks, y = features(), targets()
    moments = feature_gram(streamed(blocks, y), bias=bias)
    fits = least_squares_prefixes(moments, ridge=ridge)
    v = torch.cat([torch.ones(COUNT, 1, dtype=torch.float64)] * bias + blocks, dim=1)
    for prefix in range(len(blocks)):
        risk, fitted = slow(blocks, y, prefix, bias=bias, ridge=ridge)
        head = fits.heads[prefix]
        assert fits.risk[prefix] == pytest.approx(risk, rel=1e-12)
        assert torch.allclose(v @ head, fitted, atol=1e-11)
        assert fits.objective[prefix] == pytest.approx(risk + ridge / 2 * float(head.square().sum()), rel=1e-12)
        assert fits.lower_bound[prefix] <= fits.objective[prefix] <= fits.lower_bound[prefix] + 1e-14
        assert not head[moments.ends[prefix] :].any()
    running = prefix_objectives(moments, factorise(moments, ridge=ridge))
    assert running.tolist() == pytest.approx(fits.objective, rel=1e-13)
    assert list(fits.risk) == sorted(fits.risk, reverse=True) or ridge


def test_the_running_sum_agrees_with_separate_cholesky_solves() -> None:
    moments = feature_gram(streamed(features(), targets()))
    found = prefix_objectives(moments, factorise(moments))
    for prefix, end in enumerate(moments.ends):
        root = torch.linalg.cholesky(moments.gram[:end, :end])
        head = torch.cholesky_solve(moments.cross[:end], root)
        expected = (moments.target - float((head * moments.cross[:end]).sum())) / 2
        assert float(found[prefix]) == pytest.approx(expected, rel=1e-12)


def test_streaming_in_any_pieces_is_the_same() -> None:
    blocks, y = features(), targets()
    whole, parts = feature_gram([(blocks, y)]), feature_gram(streamed(blocks, y, size=17))
    assert whole.count == parts.count == COUNT and whole.widths == (6, 4, 6, 3)
    assert torch.allclose(whole.gram, parts.gram, atol=1e-13) and torch.allclose(whole.cross, parts.cross, atol=1e-13)


def test_predictable_and_dead_features_are_left_out_and_reported() -> None:
    blocks, y = features(), targets()
    blocks[1][:, 2] = 2 * blocks[0][:, 1] - blocks[0][:, 3] + 1
    blocks[2][:, 0] = 0
    blocks[2][:, 5] = blocks[2][:, 4]
    blocks[3] = blocks[0][:, :3] @ torch.randn(3, 3, dtype=torch.float64)
    fits = least_squares_prefixes(feature_gram(streamed(blocks, y)))
    assert fits.ranks == (6, 9, 13, 13)
    assert fits.unpredictable[0] == 1.0 and fits.unpredictable[3] == pytest.approx(0.0, abs=1e-12)
    for prefix in range(4):
        assert fits.risk[prefix] == pytest.approx(slow(blocks, y, prefix)[0], rel=1e-10)
    assert fits.risk[3] == fits.risk[2]


def test_unpredictable_share_is_the_residual_variance_of_regressing_on_the_past() -> None:
    blocks = features()
    blocks[2] = blocks[2] + 3 * blocks[1][:, :1] + 2 * blocks[0][:, :1]
    shares = factorise(feature_gram(streamed(blocks, targets()))).unpredictable
    for block in (1, 2, 3):
        past = torch.cat([torch.ones(COUNT, 1, dtype=torch.float64), *blocks[:block]], dim=1)
        residual = blocks[block] - past @ torch.linalg.lstsq(past, blocks[block]).solution
        centred = blocks[block] - blocks[block].mean(0)
        assert shares[block] == pytest.approx(float(residual.square().sum() / centred.square().sum()), rel=1e-10)


def test_fewer_samples_than_features_fits_exactly() -> None:
    blocks = [torch.randn(12, 8, dtype=torch.float64), torch.randn(12, 8, dtype=torch.float64)]
    fits = least_squares_prefixes(feature_gram([(blocks, torch.randn(12, 2, dtype=torch.float64))]))
    assert fits.ranks == (9, 12) and fits.risk[1] == pytest.approx(0.0, abs=1e-12) and fits.risk[0] > 1e-3


def test_single_precision_features_are_fitted_in_double() -> None:
    blocks, y = [block.float() for block in features()], targets()
    fits = least_squares_prefixes(feature_gram(streamed(blocks, y)))
    assert fits.dtype == "float32"
    exact = slow([block.double() for block in blocks], y, 3)[0]
    assert fits.risk[3] == pytest.approx(exact, rel=1e-12)


def test_labels_are_one_hot_targets() -> None:
    labels = torch.randint(3, (COUNT,))
    one = feature_gram([(features(), labels)], classes=3)
    two = feature_gram([(features(), torch.nn.functional.one_hot(labels, 3).double())])
    assert torch.equal(one.cross, two.cross) and one.target == two.target == 1.0


def test_leaves_that_require_gradients_are_left_alone() -> None:
    blocks = [torch.nn.Parameter(block) for block in features()]
    assert not feature_gram([(blocks, targets())]).gram.requires_grad and blocks[0].grad is None


@pytest.mark.parametrize(
    ("batches", "classes", "message"),
    [
        ([], None, "at least one sample"),
        ([([torch.ones(0, 3)], torch.ones(0, 2))], None, "at least one sample"),
        ([([], torch.ones(4, 2))], None, "at least one block of features"),
        ([([torch.ones(4, 3, dtype=torch.int64)], torch.ones(4, 2))], None, r"\(4, 3\) of torch\.int64"),
        ([([torch.ones(4, 3, 2, 2)], torch.ones(4, 2))], None, r"features \(n, width\); got \(4, 3, 2, 2\)"),
        ([([torch.ones(4, 3)], torch.zeros(4, dtype=torch.int64))], None, "expected integer labels .* classes"),
        ([([torch.ones(4, 3)], torch.tensor([0, 1, 2, 5]))], 3, "expected labels from 0 to 2; got 0 to 5"),
        ([([torch.full((4, 3), torch.nan)], torch.ones(4, 2))], None, "NaN or inf"),
        ([([torch.ones(4, 3)], torch.full((4, 2), torch.inf))], None, "NaN or inf"),
        ([([torch.ones(4, 3)], torch.ones(4, 2)), ([torch.ones(4, 2)], torch.ones(4, 2))], None, r"expected blocks"),
    ],
)
def test_misuse_is_one_line(batches: list[object], classes: int | None, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        feature_gram(batches, classes=classes)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_too_many_features_and_a_negative_ridge_are_refused() -> None:
    with pytest.raises(UsageError, match=r"the Gram matrix of 2,000,000 features and its factor needs .* GB"):
        feature_gram([([torch.zeros(1, 1).expand(1, 2_000_000)], torch.ones(1, 1))], bias=False)
    with pytest.raises(UsageError, match=r"ridge of at least 0; got -1"):
        least_squares_prefixes(feature_gram([(features(), targets())]), ridge=-1.0)


def test_zero_targets_and_zero_features_are_labelled() -> None:
    fits = least_squares_prefixes(feature_gram([([torch.zeros(9, 2)], torch.ones(9, 1))], bias=False))
    assert (fits.ranks, fits.risk) == ((0,), (0.5,))
    assert isinstance(feature_gram([(features(), torch.zeros(COUNT, 1))]), FeatureGram)
