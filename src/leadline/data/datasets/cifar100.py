"""60,000 colour photographs of 32x32 pixels: a hundred classes, 50,000 to train and 10,000 to test.

A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. Read from `cifar-100-python`, or from the
archive that holds it; the labels are the fine ones.
"""

from leadline.data import cifar
from leadline.data.dataset import Dataset
from leadline.data.place import Official, Place, check_file

FAMILY = cifar.Family(
    name="cifar100",
    folder="cifar-100-python",
    archive=Official(
        "",
        "cifar-100-python.tar.gz",
        "eb9058c3a382ffc7106e4002c42a8d85",
        "https://www.cs.toronto.edu/~kriz/",
        check_file,
    ),
    train=(("train", "16019d7e3df5f24257cddd939b257f8d"),),
    test=("test", "f0ef6b0ae62326f3e7ffdfab6717acfc"),
    labels="fine_labels",
    classes=100,
)


def load(place: Place) -> Dataset:
    """The official batches, with the fine labels."""
    return cifar.read(place, FAMILY)
