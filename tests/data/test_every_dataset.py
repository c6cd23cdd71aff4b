"""The contract of a dataset, over every file of the folder; official files are read if LEADLINE_DATA has them."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from leadline.core import plugins
from leadline.core.errors import LeadlineError, UnreadableError, UsageError
from leadline.data import Batches, load
from leadline.data.loading import PACKAGE
from leadline.data.place import data_root

NAMES = plugins.names(PACKAGE)
DATA = data_root() if os.environ.get("LEADLINE_DATA") else None
SIZES = {
    "digits": ((1, 8, 8), 10, 1437, 360),
    "mnist": ((1, 28, 28), 10, 60_000, 10_000),
    "fashion_mnist": ((1, 28, 28), 10, 60_000, 10_000),
    "cifar10": ((3, 32, 32), 10, 50_000, 10_000),
    "cifar100": ((3, 32, 32), 100, 50_000, 10_000),
    "random": ((3, 32, 32), 10, 1024, 256),
    "teacher": ((10,), 10, 1000, 200),
}
PUBLISHED = {  # mean and deviation as they are commonly quoted for these files
    "mnist": ((0.1307,), (0.3081,)),
    "fashion_mnist": ((0.2860,), (0.3530,)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "cifar100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
}


@pytest.fixture(scope="module", params=NAMES)
def dataset(request):
    try:
        return load(request.param, root=DATA or Path("/nonexistent"), download=False)
    except UnreadableError as error:
        pytest.skip(f"LEADLINE_DATA has no {request.param}: {error}")


def test_the_folder_holds_datasets_only():
    assert NAMES == ("cifar10", "cifar100", "digits", "fashion_mnist", "imagenet", "mnist", "random", "teacher")
    for name in NAMES:
        make = plugins.module(PACKAGE, name, kind="dataset").load
        assert next(iter(inspect.signature(make).parameters)).endswith("place")
        assert "\n" not in plugins.card(PACKAGE, name).split("\n\n")[0]


def test_sizes_and_types(dataset):
    if dataset.name in SIZES:
        assert (dataset.shape, dataset.classes, len(dataset.train), len(dataset.test)) == SIZES[dataset.name]
    assert dataset.train.shape == dataset.test.shape == dataset.shape
    for split in (dataset.train, dataset.test):
        assert len(split.targets) == len(split)
        if not split.targets.is_floating_point():
            assert split.targets.dtype == torch.int64
            assert split.targets.unique().tolist() == list(range(dataset.classes))


def test_statistics_are_those_of_the_training_inputs(dataset):
    if dataset.name == "imagenet":
        pytest.skip("the statistics of ImageNet are constants")
    inputs = dataset.train.inputs
    for channel, (mean, std) in enumerate(zip(dataset.mean, dataset.std, strict=True)):
        values = inputs[:, channel].double() / (255 if inputs.dtype == torch.uint8 else 1)
        assert mean == pytest.approx(values.mean().item(), rel=1e-10, abs=1e-12)
        assert std == pytest.approx(values.std(correction=0).item(), rel=1e-8)
    if dataset.name in PUBLISHED:
        assert dataset.mean == pytest.approx(PUBLISHED[dataset.name][0], abs=6e-5)
        assert dataset.std == pytest.approx(PUBLISHED[dataset.name][1], abs=6e-5)


def test_the_same_call_gives_the_same_data(dataset):
    if dataset.name == "imagenet":
        pytest.skip("tested on a tree of its own")
    again = load(dataset.name, root=DATA or Path("/nonexistent"), download=False)
    assert again.digest == dataset.digest and len(dataset.digest) == 64
    assert torch.equal(again.train.inputs, dataset.train.inputs)
    assert torch.equal(again.test.targets, dataset.test.targets)


def test_batches_can_be_cut_from_it(dataset):
    size = min(64, len(dataset.train))
    x, y = next(Batches(dataset.train, batch_size=size, normalise=(dataset.mean, dataset.std)).epoch(0))
    assert x.shape == (size, *dataset.shape) and x.dtype == torch.float32 and len(y) == size and x.isfinite().all()


def test_importing_and_listing_need_no_torch():
    code = (
        "import sys, leadline.data; from leadline.core import plugins; "
        f"assert 'digits' in plugins.names({PACKAGE!r}) and plugins.card({PACKAGE!r}, 'digits'); "
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "args", "says"),
    [
        ("fashion-mnist", {}, r"unknown dataset 'fashion-mnist'; did you mean 'fashion_mnist'"),
        ("digits", {"whitten": 3}, r"unknown argument of dataset digits: 'whitten'; did you mean 'whiten'\?"),
        ("digits", {"whiten": "many"}, r"dataset digits: whiten='many' is wrong: .*integer"),
        ("digits", {"whiten": 65}, r"whiten=65: the inputs have \d+ principal components; expected 1 to \d+"),
        ("digits", {"whiten": 0}, r"whiten=0"),
        ("teacher", {"vectors": True}, r"vectors=True: the targets of teacher are values to regress on already"),
        ("teacher", {"noise": -1}, r"noise at least 0; got .*noise=-1.0"),
        ("teacher", {"width": 50, "train": 50}, r"whitening 50 dimensions needs more than 50 training inputs"),
        ("random", {"shape": 0}, r"sizes must be at least 1; got shape=0"),
        ("random", {"shape": []}, r"sizes must be at least 1; got shape=\[\]"),
        ("random", {"classes": 2.5}, r"classes=2.5 is wrong: .*integer"),
    ],
)
def test_what_cannot_be_meant_is_one_line(name, args, says):
    with pytest.raises(UsageError, match=says) as refused:
        load(name, **args)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"digits", "random", "teacher"}))
def test_missing_files_are_one_line_that_says_what_to_do(name, tmp_path):
    with pytest.raises(LeadlineError, match="LEADLINE_DATA") as missing:
        load(name, root=tmp_path, download=False)
    assert missing.value.exit_code == 3 and str(tmp_path) in str(missing.value) and "\n" not in str(missing.value)


def test_pooled_images_are_means_of_squares():
    whole, pooled = load("digits", train=9), load("digits", train=9, pool=3)
    corner = whole.train.inputs[:, :, :3, 3:6].double().mean((2, 3))
    assert pooled.shape == (1, 2, 2) and pooled.train.inputs.dtype == torch.uint8 and pooled.digest != whole.digest
    assert (pooled.train.inputs[:, :, 0, 1] - corner).abs().max() <= 0.5
    for name, k, said in (("digits", 9, "fit into"), ("teacher", 2, "expected images")):
        with pytest.raises(UsageError, match=said):
            load(name, pool=k)
