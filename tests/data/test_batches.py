"""Batches: one law over every way of cutting - what comes at (seed, epoch, position) depends on nothing else."""

import itertools
import random

import pytest
import torch

from leadline.core.errors import UsageError
from leadline.data import Batches, load
from leadline.data.augment import crop_flip
from leadline.data.dataset import InMemory


@pytest.fixture(scope="module")
def split():
    generator = torch.Generator().manual_seed(7)
    pixels = torch.randint(0, 256, (53, 3, 12, 10), dtype=torch.uint8, generator=generator)
    return InMemory(pixels, torch.arange(53))


WAYS = [
    {"augment": augment, "pad": pad, "drop_last": drop_last, "shuffle": shuffle, "channels_last": channels_last}
    for (augment, pad), drop_last, shuffle, channels_last in itertools.product(
        [("none", "zero"), ("crop-flip", "zero"), ("crop-flip", "reflect")], [True, False], [True, False], [True, False]
    )
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))
def test_any_position_of_any_epoch_is_reached_directly(split, way):
    batches = Batches(split, batch_size=8, seed=3, **way)
    for e in (0, 2):
        whole = list(batches.epoch(e))
        assert len(whole) == len(batches) == (6 if way["drop_last"] else 7)
        for start in range(len(whole) + 1):
            rest = list(Batches(split, batch_size=8, seed=3, **way).epoch(e, start=start))
            assert len(rest) == len(whole) - start
            for (x, y), (x_again, y_again) in zip(whole[start:], rest, strict=True):
                assert torch.equal(x, x_again) and torch.equal(y, y_again)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))
@pytest.mark.parametrize("world_size", [2, 4])
def test_the_shares_of_all_processes_are_the_whole_batch(split, way, world_size):
    whole = list(Batches(split, batch_size=8, seed=1, **way).epoch(1))
    shares = [
        list(Batches(split, batch_size=8, seed=1, rank=rank, world_size=world_size, **way).epoch(1))
        for rank in range(world_size)
    ]
    for k, (x, y) in enumerate(whole):
        for rank, share in enumerate(shares):
            assert torch.equal(share[k][0], x[rank::world_size]) and torch.equal(share[k][1], y[rank::world_size])


def test_an_epoch_is_a_permutation_and_each_is_another(split):
    batches = Batches(split, batch_size=8, seed=3, drop_last=False)
    orders = [torch.cat([y for _, y in batches.epoch(e)]).tolist() for e in range(3)]
    orders.append(torch.cat([y for _, y in Batches(split, batch_size=8, seed=4, drop_last=False).epoch(0)]).tolist())
    assert all(sorted(order) == list(range(53)) for order in orders)
    assert len(set(map(tuple, orders))) == 4
    in_order = Batches(split, batch_size=8, shuffle=False, drop_last=False)
    assert torch.cat([y for _, y in in_order.epoch(5)]).tolist() == list(range(53))


def test_no_global_generator_is_touched(split):
    before = torch.get_rng_state(), random.getstate()
    list(Batches(split, batch_size=8, augment="crop-flip").epoch(0))
    assert torch.equal(torch.get_rng_state(), before[0]) and random.getstate() == before[1]


def test_normalisation_agrees_with_one_image_at_a_time(split):
    mean, std = split.statistics()
    batches = Batches(split, batch_size=8, seed=2, normalise=(mean, std), dtype=torch.float64)
    for x, y in batches.epoch(0):
        for image, row in zip(x, y, strict=True):
            for channel in range(3):
                expected = (split.inputs[row, channel].double() / 255 - mean[channel]) / std[channel]
                torch.testing.assert_close(image[channel], expected, rtol=1e-13, atol=1e-13)
    everything = torch.cat([x for x, _ in Batches(split, batch_size=53, normalise=(mean, std)).epoch(0)])
    torch.testing.assert_close(everything.mean((0, 2, 3)), torch.zeros(3), rtol=0, atol=1e-6)
    torch.testing.assert_close(everything.std((0, 2, 3), correction=0), torch.ones(3), rtol=1e-6, atol=0)


def test_without_normalisation_pixels_run_from_0_to_1(split):
    x, y = next(Batches(split, batch_size=8).epoch(0))
    torch.testing.assert_close(x, split.inputs[y].float() / 255)


def test_channels_last_is_a_layout_and_nothing_else(split):
    plain = next(Batches(split, batch_size=8).epoch(0))[0]
    last = next(Batches(split, batch_size=8, channels_last=True).epoch(0))[0]
    assert last.is_contiguous(memory_format=torch.channels_last) and torch.equal(plain, last)


def test_values_to_regress_on_come_in_the_type_of_the_inputs():
    batches = Batches(load("teacher", width=6, train=20).train, batch_size=5, dtype=torch.float32)
    x, y = next(batches.epoch(0))
    assert x.dtype == y.dtype == torch.float32 and x.shape == y.shape == (5, 6)


@pytest.mark.parametrize("pad", ["zero", "reflect"])
def test_crop_and_flip_agree_with_one_pixel_at_a_time(pad):
    images = torch.randint(0, 256, (9, 2, 7, 6), dtype=torch.uint8)
    draws = torch.rand(9, 3, dtype=torch.float64)
    draws[:4, 0], draws[:4, 1] = torch.tensor([0, 0.999, 0, 0.999]), torch.tensor([0, 0.999, 0.999, 0])

    def pixel(image, channel, row, column):
        if pad == "zero":
            inside = 0 <= row < 7 and 0 <= column < 6
            return int(image[channel, row, column]) if inside else 0
        row, column = abs(row), abs(column)
        return int(image[channel, row if row < 7 else 12 - row, column if column < 6 else 10 - column])

    fast = crop_flip(images, draws, pad=pad)
    for n, (image, (top, left, flip)) in enumerate(zip(images, draws.tolist(), strict=True)):
        for channel, row, column in itertools.product(range(2), range(7), range(6)):
            source = 5 - column if flip < 0.5 else column
            expected = pixel(image, channel, row + int(top * 9) - 4, source + int(left * 9) - 4)
            assert int(fast[n, channel, row, column]) == expected


def test_crops_and_flips_are_spread_evenly():
    coded = torch.arange(16 * 16, dtype=torch.uint8).view(1, 1, 16, 16)
    split = InMemory(coded.expand(9000, 1, 16, 16), torch.zeros(9000, dtype=torch.int64))
    x, _ = next(Batches(split, batch_size=9000, augment="crop-flip").epoch(0))
    middle = (x[:, 0, 8, 8] * 255).round().long()
    mirrored = x[:, 0, 8, 9] < x[:, 0, 8, 8]
    assert 0.48 < mirrored.double().mean() < 0.52
    counts = torch.bincount(middle[~mirrored]).reshape(-1)
    counts = counts[counts > 0]
    assert len(counts) == 81 and counts.min() > 25 and counts.max() < 100  # about 55 each


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"batch_size": 54}, "batch size 54 is larger than the data: 53 samples"),
        ({"batch_size": 0}, "at least 1 .*got 0"),
        ({"batch_size": 8, "seed": -1}, "seed at least 0; got 8 and -1"),
        ({"batch_size": 8, "world_size": 3}, "batch size 8 cannot be shared by 3 processes"),
        ({"batch_size": 8, "augment": "crop"}, r"unknown augmentation 'crop'; did you mean 'crop-flip'\?"),
        ({"batch_size": 8, "pad": "refelct"}, r"unknown padding 'refelct'; did you mean 'reflect'\?"),
    ],
)
def test_what_cannot_be_meant_is_refused(split, wrong, says):
    with pytest.raises(UsageError, match=says):
        Batches(split, **wrong)


def test_vectors_and_tiny_images_are_not_cropped(split):
    for inputs in (torch.zeros(20, 5), torch.zeros(20, 1, 4, 4)):
        with pytest.raises(UsageError, match=r"crop-flip needs images .*got shape"):
            Batches(InMemory(inputs, torch.zeros(20)), batch_size=5, augment="crop-flip")


def test_a_batch_may_exceed_the_data_where_nothing_is_left_out(split):
    ((x, _),) = Batches(split, batch_size=500, drop_last=False).epoch(0)
    assert len(x) == 53


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_batches_of_a_gpu_are_those_of_the_cpu(split):
    ways = {"batch_size": 8, "augment": "crop-flip", "pad": "reflect", "normalise": split.statistics()}
    for here, there in zip(
        Batches(split, **ways).epoch(1), Batches(split, device="cuda", **ways).epoch(1), strict=True
    ):
        torch.testing.assert_close(here[0], there[0].cpu())
        assert torch.equal(here[1], there[1].cpu())
