"""The datasets that are computed: digits, teacher, random, and whitening, against their definitions."""

import numpy as np
import pytest
import torch

from leadline.core.errors import UsageError
from leadline.data import load
from leadline.data.whiten import fit


def covariance(x):
    centred = x.double() - x.double().mean(0)
    return centred.T @ centred / len(x)


def test_the_digits_are_split_by_every_fifth_of_each_class_in_order():
    digits = load("digits")
    levels = torch.cat([digits.train.inputs, digits.test.inputs]).unique()
    assert len(levels) == 17 and levels.max() == 255
    counts = torch.bincount(digits.train.targets) + torch.bincount(digits.test.targets)
    assert counts.tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # as UCI lists them
    assert torch.bincount(digits.test.targets).tolist() == [36, 36, 36, 36, 37, 36, 36, 36, 35, 36]


def test_the_first_image_is_the_one_that_uci_lists_first():
    listed = [
        [0, 0, 5, 13, 9, 1, 0, 0],
        [0, 0, 13, 15, 10, 15, 5, 0],
        [0, 3, 15, 2, 0, 11, 8, 0],
        [0, 4, 12, 0, 0, 8, 8, 0],
        [0, 5, 8, 0, 0, 9, 8, 0],
        [0, 4, 11, 0, 1, 12, 7, 0],
        [0, 2, 14, 5, 10, 12, 0, 0],
        [0, 0, 6, 13, 10, 0, 0, 0],
    ]
    digits = load("digits")
    assert (digits.test.inputs[0, 0].double() * 16 / 255).round().tolist() == listed and digits.test.targets[0] == 0


def test_a_shorter_dataset_has_the_first_samples_of_both_splits():
    digits, shorter = load("digits"), load("digits", train=100, test=360)
    assert torch.equal(shorter.train.inputs, digits.train.inputs[:100]) and len(shorter.test) == 360
    assert torch.equal(shorter.train.targets, digits.train.targets[:100]) and shorter.digest != digits.digest
    assert load("digits", train=1437).digest == digits.digest and len(load("random", train=7).train) == 7
    assert load("digits", train=100, whiten=3).train.inputs.mean(0).abs().max() < 1e-12
    for wrong in (-1, 0, 1438):
        with pytest.raises(UsageError, match=r"at most \(1437, 360\)"):
            load("digits", train=wrong)


def test_whitening_agrees_with_a_singular_value_decomposition():
    x = torch.randn(200, 6, dtype=torch.float64) @ torch.randn(6, 6, dtype=torch.float64) + 3
    whitening = fit(x, 4)
    z = whitening(x)
    torch.testing.assert_close(covariance(z), torch.eye(4, dtype=torch.float64), rtol=0, atol=1e-12)
    _, _, axes = np.linalg.svd((x - x.mean(0)).numpy())
    kept = axes[:4].T @ axes[:4]
    rows = whitening.matrix / whitening.matrix.norm(dim=1, keepdim=True)
    np.testing.assert_allclose((rows.T @ rows).numpy(), kept, atol=1e-10)
    assert (rows.gather(1, rows.abs().argmax(1, keepdim=True)) > 0).all()
    stretched = (x - x.mean(0)) @ rows.T
    assert stretched.var(0).diff().le(0).all()


def test_whitened_digits_are_uncorrelated_over_the_training_split_only():
    digits, plain = load("digits", whiten=10), load("digits")
    assert digits.shape == (10,) and digits.train.inputs.dtype == torch.float64 and digits.digest != plain.digest
    torch.testing.assert_close(covariance(digits.train.inputs), torch.eye(10, dtype=torch.float64), rtol=0, atol=1e-12)
    assert (covariance(digits.test.inputs) - torch.eye(10)).abs().max() > 0.01
    assert digits.mean == pytest.approx((0,) * 10, abs=1e-12) and digits.std == pytest.approx((1,) * 10)
    assert torch.equal(digits.train.targets, plain.train.targets)


def test_class_numbers_become_basis_vectors():
    digits, plain = load("digits", vectors=True), load("digits")
    assert digits.train.targets.shape == (1437, 10) and digits.digest != plain.digest
    assert torch.equal(digits.train.targets.argmax(1), plain.train.targets)
    assert torch.equal(digits.train.targets.sum(1), torch.ones(1437, dtype=torch.float64))


@pytest.mark.parametrize("width", [1, 2, 33])
def test_a_teacher_without_noise_is_exactly_linear(width):
    teacher = load("teacher", width=width, outputs=3)
    assert teacher.shape == (width,) and teacher.classes == 3
    solution = torch.linalg.lstsq(teacher.train.inputs, teacher.train.targets).solution
    torch.testing.assert_close(teacher.test.inputs @ solution, teacher.test.targets, rtol=1e-10, atol=1e-10)
    identity = torch.eye(width, dtype=torch.float64)
    torch.testing.assert_close(covariance(teacher.train.inputs), identity, rtol=0, atol=1e-12)


def test_noise_is_as_large_as_was_asked_for_and_nothing_else_changes():
    quiet, noisy = load("teacher", train=20_000), load("teacher", train=20_000, noise=0.3)
    assert torch.equal(quiet.train.inputs, noisy.train.inputs)
    assert (noisy.train.targets - quiet.train.targets).std() == pytest.approx(0.3, rel=0.02)


def test_labels_are_the_largest_output():
    values, labels = load("teacher", outputs=4), load("teacher", outputs=4, labels=True)
    assert torch.equal(values.test.targets.argmax(1), labels.test.targets)


def test_without_whitening_inputs_are_only_normal():
    teacher = load("teacher", width=5, train=50_000, whitened=False)
    assert 1e-4 < (covariance(teacher.train.inputs) - torch.eye(5)).abs().max() < 0.05


@pytest.mark.parametrize(("shape", "expected"), [(7, (7,)), ([3, 5, 4], (3, 5, 4))])
def test_noise_has_any_shape(shape, expected):
    noise = load("random", shape=shape, classes=3, train=500, test=20)
    assert noise.shape == expected and noise.classes == 3
    assert abs(noise.train.inputs.mean()) < 0.1 and noise.train.inputs.std() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("name", ["random", "teacher"])
def test_the_seed_decides_and_the_global_generator_does_not(name):
    first, second = load(name, seed=1), load(name, seed=2)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    again = load(name, seed=1)
    assert torch.equal(first.train.inputs, again.train.inputs) and first.digest == again.digest != second.digest
    assert not torch.equal(first.train.inputs, second.train.inputs)
    assert torch.equal(before, torch.get_rng_state())
