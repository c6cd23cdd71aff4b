"""70,000 pictures of clothes of 28x28 pixels: ten classes, 60,000 to train and 10,000 to test.

H. Xiao, K. Rasul and R. Vollgraf, Fashion-MNIST, 2017, arXiv:1708.07747 (MIT licence).
"""

from leadline.data import idx
from leadline.data.dataset import Dataset
from leadline.data.place import Official, Place

_ADDRESS = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_MD5 = (
    "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    "9018921c3c673c538a1fc5bad174d6f9",
    "8181f5470baa50b63fa0f6fddb340f0a",
    "15d484375f8d13e6eb1aabb0c3f46965",
)

FILES = tuple(
    Official("FashionMNIST/raw", f"{name}.gz", md5, _ADDRESS) for name, md5 in zip(idx.FILES, _MD5, strict=True)
)


def load(place: Place) -> Dataset:
    """The official files, from `FashionMNIST/raw` or from the data root itself."""
    return idx.read(place, "fashion_mnist", FILES)
