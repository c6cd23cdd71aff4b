"""A small tree of real JPEGs: what is read does not depend on workers, and agrees with torchvision's transforms."""

import shutil

import numpy as np
import pytest
import torch

from leadline.core.errors import UnreadableError, UsageError
from leadline.data import Batches, load
from leadline.data.image import DRAWS, central_view, opened, random_box, random_view

Image = pytest.importorskip("PIL.Image", reason="pillow is not installed (the extra imagenet)")

SIDES = [(40, 30), (30, 44), (36, 36), (90, 20), (20, 90), (33, 31)]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(3)
    for part, count in (("train", 5), ("val", 2)):
        for number, name in enumerate(("n01", "n02", "n03")):
            folder = root / "imagenet" / part / name
            folder.mkdir(parents=True)
            for i in range(count):
                width, height = SIDES[(i + number) % len(SIDES)]
                smooth = rng.integers(0, 256, (6, 6, 3), dtype=np.uint8)
                image = Image.fromarray(smooth).resize((width, height))
                (image.convert("L") if i == 1 else image).save(folder / f"{name}_{i}.JPEG", quality=95)
            (folder / "notes.txt").write_text("no image")
    return root


def all_of(split, e=1, start=0, **ways):
    return list(Batches(split, batch_size=4, seed=2, drop_last=False, **ways).epoch(e, start=start))


def test_what_is_in_the_tree(root):
    dataset = load("imagenet", root=root, size=24, workers=0)
    assert dataset.shape == (3, 24, 24) and dataset.classes == 3
    assert dataset.train.targets.tolist() == [0] * 5 + [1] * 5 + [2] * 5 and len(dataset.test) == 6
    assert dataset.mean == (0.485, 0.456, 0.406)
    with pytest.raises(UsageError, match="read batch by batch"):
        load("imagenet", root=root, whiten=3)


@pytest.mark.parametrize("augment", ["none", "crop-flip"])
def test_neither_workers_nor_the_start_nor_the_share_change_anything(root, augment):
    splits = [load("imagenet", root=root, size=24, workers=workers).train for workers in (0, 2)]
    before = torch.get_rng_state()
    alone, many = (all_of(split, augment=augment) for split in splits)
    assert torch.equal(before, torch.get_rng_state())
    later = all_of(splits[1], start=2, augment=augment)
    share = all_of(splits[0], augment=augment, rank=1, world_size=2)
    for (x, y), (u, v) in [*zip(alone, many, strict=True), *zip(alone[2:], later, strict=True)]:
        assert torch.equal(x, u) and torch.equal(y, v)
    for (x, y), (u, v) in zip(alone, share, strict=True):
        assert torch.equal(x[1::2], u) and torch.equal(y[1::2], v)


def test_each_epoch_sees_other_boxes(root):
    split = load("imagenet", root=root, size=24, workers=0).train
    first, second = (
        next(Batches(split, batch_size=15, shuffle=False, augment="crop-flip").epoch(e))[0] for e in (0, 1)
    )
    assert (first != second).flatten(1).any(1).all()


def test_views_agree_with_torchvision(root):
    from tests.foreign import declare_vision_operators

    declare_vision_operators()
    transforms = pytest.importorskip("torchvision.transforms.functional")
    rng = np.random.default_rng(1)
    for path in sorted((root / "imagenet/val").rglob("*.JPEG")):
        image = opened(path)
        central = transforms.center_crop(transforms.resize(image, 32), [28, 28])
        assert torch.equal(central_view(image, 28), transforms.pil_to_tensor(central))
        for flip in (0.2, 0.7):
            draws = [*rng.random(DRAWS - 1).tolist(), flip]
            left, top, right, bottom = random_box(image.size, draws)
            theirs = transforms.resized_crop(image, top, left, bottom - top, right - left, [16, 16])
            theirs = transforms.hflip(theirs) if flip < 0.5 else theirs
            assert torch.equal(random_view(image, 16, draws), transforms.pil_to_tensor(theirs))


def test_random_boxes_have_the_area_and_the_aspect_of_the_paper():
    draws = np.random.default_rng(5).random((4000, DRAWS))
    boxes = np.array([random_box((400, 300), row.tolist()) for row in draws])
    left, top, right, bottom = boxes.T
    assert left.min() >= 0 and top.min() >= 0 and right.max() <= 400 and bottom.max() <= 300
    width, height = right - left, bottom - top
    area, aspect = width * height / (400 * 300), width / height
    assert area.min() == pytest.approx(0.08, abs=0.005) and area.max() > 0.9
    assert aspect.min() == pytest.approx(3 / 4, abs=0.02) and aspect.max() == pytest.approx(4 / 3, abs=0.02)
    small = area < 0.4  # boxes that always fit: the area is uniform, the aspect is as often wide as tall
    assert np.histogram(area[small], 4, (0.08, 0.4))[0] / small.sum() == pytest.approx([0.25] * 4, abs=0.04)
    assert np.mean(aspect[small] > 1) == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize(("sides", "expected"), [((1000, 10), (493, 0, 506, 10)), ((10, 1000), (0, 493, 10, 506))])
def test_if_no_box_fits_the_largest_central_one_is_taken(sides, expected):
    assert random_box(sides, [0.99] * DRAWS) == expected


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("damage", [lambda content: content[:200], lambda content: b"no image", lambda content: b""])
def test_a_damaged_image_is_named(root, tmp_path, workers, damage):
    shutil.copytree(root / "imagenet", tmp_path / "imagenet")
    path = tmp_path / "imagenet/train/n02/n02_3.JPEG"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UnreadableError, match=r"n02_3\.JPEG") as refused:
        all_of(load("imagenet", root=tmp_path, size=24, workers=workers).train)
    assert "\n" not in str(refused.value)


def test_a_tree_that_is_none_is_refused(tmp_path):
    (tmp_path / "train" / "n01").mkdir(parents=True)
    with pytest.raises(UnreadableError, match="expected folders train and val"):
        load("imagenet", root=tmp_path)
    (tmp_path / "val" / "n01").mkdir(parents=True)
    with pytest.raises(UnreadableError, match=r"train holds no images: expected CLASS/\*\.jpeg"):
        load("imagenet", root=tmp_path)
    Image.new("RGB", (9, 9)).save(tmp_path / "train" / "n01" / "a.png")
    (tmp_path / "val" / "n01").rmdir()
    with pytest.raises(UnreadableError, match=r"cannot read .*val/n01: No such file"):
        load("imagenet", root=tmp_path)
    with pytest.raises(UsageError, match="size must be at least 1"):
        load("imagenet", root=tmp_path, size=0)
