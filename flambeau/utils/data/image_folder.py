"""Images in one folder per class."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.utils.data.dataset import Dataset

EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def load_image(path: str) -> Any:
    """An image as Pillow has it, red, green, blue.

    Raises:
        OSError: it is no image, or cut short; the text names the file.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            return image.convert("RGB")
    except UnidentifiedImageError as error:
        raise OSError(f"{path} is no image that Pillow can read") from error
    except (OSError, SyntaxError) as error:  # Pillow's SyntaxError is a damaged file's
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise OSError(f"{path} is damaged or cut short: {error}") from error


class ImageFolder(Dataset[tuple[Any, Any]]):
    """Images below `root/class name/`, as (image, number of the class).

        data = ImageFolder("flowers", transform=Compose([Resize(256), CenterCrop(224), ToTensor()]))

    transform, target_transform: called with each image (Pillow's) and each class number.
    loader: what makes an image of a path.
    is_valid_file: which paths are samples, in place of `extensions`.
    allow_empty: whether classes without images are none the less classes.

    `classes` are the sorted folder names, `class_to_idx` their numbers, `samples` are pairs of a
    path and a class number, in order, `targets` the numbers alone.

    Raises:
        FileNotFoundError: no folders of classes, or one without images.
        ValueError: both `extensions` and `is_valid_file` are given.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        loader: Callable[[str], Any] = load_image,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
        *,
        extensions: str | tuple[str, ...] | None = None,
    ) -> None:
        if extensions is not None and is_valid_file is not None:
            raise ValueError(
                "Both extensions and is_valid_file cannot be None or not None at the same time"
            )
        self.root = os.fspath(root)
        self.transform, self.target_transform, self.loader = transform, target_transform, loader
        self.extensions = EXTENSIONS if extensions is None else extensions
        self.is_valid_file = is_valid_file
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = list(self._found())
        self.targets = [target for _, target in self.samples]
        if not allow_empty:
            self._check_all_have_samples()

    @property
    def imgs(self) -> list[tuple[str, int]]:
        """Another name of `samples`."""
        return self.samples

    def find_classes(self, directory: str) -> tuple[list[str], dict[str, int]]:
        """The names of the classes, and their numbers; subclasses may have others.

        Raises:
            FileNotFoundError: there are no folders.
        """
        classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
        if not classes:
            raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
        return classes, {name: number for number, name in enumerate(classes)}

    def _found(self) -> Iterator[tuple[str, int]]:
        for name in sorted(self.class_to_idx):
            for folder, _, files in sorted(os.walk(f"{self.root}/{name}", followlinks=True)):
                for file in sorted(files):
                    path = f"{folder}/{file}"
                    if self._is_sample(path):
                        yield path, self.class_to_idx[name]

    def _is_sample(self, path: str) -> bool:
        if self.is_valid_file is not None:
            return self.is_valid_file(path)
        return path.lower().endswith(self.extensions)

    def _check_all_have_samples(self) -> None:
        there = set(self.targets)
        empty = [name for name in self.classes if self.class_to_idx[name] not in there]
        if not empty:
            return
        text = f"Found no valid file for the classes {', '.join(empty)}. "
        if self.is_valid_file is None:
            known = self.extensions
            text += (
                f"Supported extensions are: {known if isinstance(known, str) else ', '.join(known)}"
            )
        raise FileNotFoundError(text)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        image: Any = self.loader(path)
        number: Any = target
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            number = self.target_transform(number)
        return image, number

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        return (
            f"Dataset {type(self).__name__}\n    Number of datapoints: {len(self)}\n"
            f"    Root location: {self.root}"
        )
