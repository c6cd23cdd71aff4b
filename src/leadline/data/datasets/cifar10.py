"""60,000 colour photographs of 32x32 pixels: ten classes, 50,000 to train and 10,000 to test.

A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. Read from `cifar-10-batches-py`, or from
the archive that holds it.
"""

from leadline.data import cifar
from leadline.data.dataset import Dataset
from leadline.data.place import Official, Place, check_file

FAMILY = cifar.Family(
    name="cifar10",
    folder="cifar-10-batches-py",
    archive=Official(
        "",
        "cifar-10-python.tar.gz",
        "c58f30108f718f92721af3b95e74349a",
        "https://www.cs.toronto.edu/~kriz/",
        check_file,
    ),
    train=(
        ("data_batch_1", "c99cafc152244af753f735de768cd75f"),
        ("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
        ("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
        ("data_batch_4", "634d18415352ddfa80567beed471001a"),
        ("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
    ),
    test=("test_batch", "40351d587109b95175f43aff81a1287e"),
    labels="labels",
    classes=10,
)


def load(place: Place) -> Dataset:
    """The official batches."""
    return cifar.read(place, FAMILY)
