"""The CIFAR family: pickled batches in a folder or in the archive it comes in, verified before they are opened."""

import lzma
import tarfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from leadline.core.errors import UnreadableError
from leadline.data.dataset import Dataset, InMemory, digest_of
from leadline.data.fetch import alone
from leadline.data.place import Official, Place, checked, content_of, explained
from leadline.data.unpickle import restricted

_SIDE = 32
_LARGEST = 2**28


@dataclass(frozen=True)
class Family:
    """The files of a dataset, with their md5, in the folder that its official archive unpacks to."""

    name: str
    folder: str
    archive: Official
    train: tuple[tuple[str, str], ...]
    test: tuple[str, str]
    labels: str
    classes: int

    @property
    def files(self) -> dict[str, str]:
        return dict((*self.train, self.test))


def read(place: Place, family: Family) -> Dataset:
    """The dataset; its archive is unpacked, or fetched and unpacked, where files are missing."""
    if not _complete(place, family):
        names = (family.archive.name, f"{family.folder}.tar.gz", f"{family.folder}.tar.xz")
        archive, folder = place.find("", *names) or place.fetched(family.archive), place.root / family.folder
        with explained("write", folder), alone(folder):
            if not _complete(place, family):
                _unpack(archive, folder, family.files)
    train, test = _split(place, family, family.train), _split(place, family, (family.test,))
    return Dataset(family.name, family.classes, train, test, digest_of(family.name, md5=list(family.files.values())))


def _complete(place: Place, family: Family) -> bool:
    return all(place.find(family.folder, name) for name in family.files)


def _split(place: Place, family: Family, files: tuple[tuple[str, str], ...]) -> InMemory:
    parts = [_batch(place.find(family.folder, name) or place.root / name, md5, family) for name, md5 in files]
    inputs, targets = zip(*parts, strict=True)
    return InMemory(torch.cat(inputs), torch.cat(targets))


def _batch(path: Path, md5: str, family: Family) -> tuple[Tensor, Tensor]:
    batch = restricted(content_of(path, md5), path=path)
    try:
        images = torch.from_numpy(batch["data"]).view(torch.uint8).view(-1, 3, _SIDE, _SIDE)
        labels = torch.tensor(batch[family.labels], dtype=torch.int64)
        if labels.shape != images.shape[:1] or not torch.equal(labels, labels.clamp(0, family.classes - 1)):
            raise ValueError(f"{len(images)} images go with {len(labels)} labels below {family.classes}")
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise UnreadableError(f"{path} does not hold 32x32 images and {family.labels}: {error}") from error
    return images, labels


def _unpack(archive: Path, folder: Path, files: dict[str, str]) -> None:
    """Take the expected files, and only these, out of the archive; each gets its name once it is verified."""
    missing = {f"{folder.name}/{name}": md5 for name, md5 in files.items()}
    try:
        with explained("read", archive), tarfile.open(archive) as members:
            for member in members:
                md5 = missing.pop(member.name.removeprefix("./"), None) if member.isfile() else None
                if md5 and (file := members.extractfile(member)):
                    content = checked(file.read(_LARGEST), md5, what=f"{member.name} in {archive}")
                    _put(content, folder / Path(member.name).name)
    except (tarfile.TarError, lzma.LZMAError) as error:
        raise UnreadableError(f"{archive} is damaged or cut short: {error}") from error
    if missing:
        raise UnreadableError(f"{archive} does not hold {', '.join(missing)}")


def _put(content: bytes, path: Path) -> None:
    part = path.with_name(path.name + ".part")
    try:
        with explained("write", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
