"""Parameter counts at full size, on the meta device, against the papers' tables and other published counts."""

import pytest
import torch

from leadline.models import create, list

# Zaeemzadeh et al., Table 2 and Fig. 5; Chen et al., Tables 1 and 2: the exact numbers behind the rounded ones
# printed there, for ten and for a hundred classes.
PAPERS = {
    "preresnet-164": (1_703_258, 1_726_388),
    "preresnet-164-erased": (1_703_258, 1_726_388),
    "preresnet-1001": (10_327_706, 10_350_836),
    "preresnet-1001-erased": (10_327_706, 10_350_836),
    "procresnet-166": (1_715_018, 1_738_148),
    "procresnet-166-erased": (1_715_018, 1_738_148),
    "procresnet-166-unprojected": (1_715_018, 1_738_148),
    "procresnet-274": (2_827_850, 2_827_850 + 90 * 257),
    "procresnet-1003": (10_339_466, 10_362_596),
    "procresnet-1003-erased": (10_339_466, 10_362_596),
    "wrn-16-8": (11_091_594, 11_137_764),
    "bn-resnest-wrn-16-8": (11_091_594, 11_137_764),
    "resnest-wrn-16-8": (11_090_570, 11_136_740),
    "a-resnest-wrn-16-8": (8_744_164, 8_906_344),
    "wrn-40-4": (8_977_226, 9_000_356),
    "bn-resnest-wrn-40-4": (8_977_226, 9_000_356),
    "resnest-wrn-40-4": (8_976_714, 8_999_844),
    "a-resnest-wrn-40-4": (8_411_420, 8_655_320),
    "preresnet-basic-110": (1_730_522, 1_736_372),
    "bn-resnest-preresnet-basic-110": (1_730_522, 1_736_372),
    "resnest-preresnet-basic-110": (1_730_394, 1_736_244),
    "a-resnest-preresnet-basic-110": (1_713_620, 1_900_280),
    "preresnet-basic-20": (272_282, 278_132),
    "bn-resnest-preresnet-basic-20": (272_282, 278_132),
    "resnest-preresnet-basic-20": (272_154, 278_004),
    "a-resnest-preresnet-basic-20": (238_130, 269_540),
}

# The counts torchvision and timm document for the same ImageNet networks.
IMAGENET = {
    "resnet-18-imagenet": 11_689_512,
    "resnet-34-imagenet": 21_797_672,
    "resnet-50-imagenet": 25_557_032,
    "resnet-101-imagenet": 44_549_160,
    "resnet-152-imagenet": 60_192_808,
    "resnext-50-imagenet": 25_028_904,
    "resnext-101-imagenet": 44_177_704,
}


@pytest.mark.parametrize(("name", "counts"), PAPERS.items())
def test_counts_of_the_papers(name: str, counts: tuple[int, int]) -> None:
    with torch.device("meta"):
        assert tuple(create(name, num_classes=classes).parameter_count for classes in (10, 100)) == counts


def test_every_listed_network_of_the_two_papers_has_its_count() -> None:
    rest = {
        "preresnet-20",
        "preresnet-83",
        "procresnet-22",
        "procresnet-85",
        "preplain-20",
        "preplain-83",
        "preplain-164",
    }
    listed = {name for pattern in ("pre*", "proc*", "*wrn*", "*resnest-pre*") for name in list(pattern)}
    assert listed - rest == set(PAPERS)


@pytest.mark.parametrize(("name", "count"), IMAGENET.items())
def test_counts_on_imagenet(name: str, count: int) -> None:
    with torch.device("meta"):
        assert create(name).parameter_count == count


def test_zero_padded_resnet_110_is_that_of_he_et_al() -> None:
    with torch.device("meta"):
        assert create("resnet-110", shortcut="zero-pad").parameter_count == 1_727_962  # "1.7M"
