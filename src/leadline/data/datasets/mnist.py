"""70,000 handwritten digits of 28x28 pixels: ten classes, 60,000 to train and 10,000 to test.

Y. LeCun, C. Cortes and C. J. C. Burges, The MNIST database of handwritten digits, 1998.
"""

from leadline.data import idx
from leadline.data.dataset import Dataset
from leadline.data.place import Official, Place

_ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_MD5 = (
    "6bbc9ace898e44ae57da46a324031adb",
    "a25bea736e30d166cdddb491f175f624",
    "2646ac647ad5339dbf082846283269ea",
    "27ae3e4e09519cfbb04c329615203637",
)

FILES = tuple(Official("MNIST/raw", f"{name}.gz", md5, _ADDRESS) for name, md5 in zip(idx.FILES, _MD5, strict=True))


def load(place: Place) -> Dataset:
    """The official files, from `MNIST/raw` or from the data root itself."""
    return idx.read(place, "mnist", FILES)
