"""Tar files as a dataset."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from flambeau.utils.data.archives.decoding import DECODERS, Decoder, decoder_of
from flambeau.utils.data.archives.stream import ArchiveDataset
from flambeau.utils.data.archives.tar_index import TarIndex, index_of, key_and_field


class TarDataset(ArchiveDataset):
    """The samples of tar files, each exactly once per pass, for any number of workers and ranks.

        dataset = TarDataset("train-{000..007}.tar", fields=("jpg", "cls"), shuffle=1000)
        for images, labels in DataLoader(dataset, batch_size=64, num_workers=4): ...

    Files are read in long stretches, so that slow disks and networks do well. One pass over the
    headers of each file (once: the result is kept beside it) tells where the samples lie.

    urls_or_paths: one or several paths or http(s) URLs; `{000..007}` stands for all numbers.
    fields: give tuples of these fields (`"jpg;png"`: the first that is there); by default a sample
        is a dict of its fields, with its name as `__key__`.
    decode: True, by extension: images to uint8 [3, H, W] tensors, npy, json, cls, txt,
        safetensors; False: bytes; a dict of functions by extension, beside the usual ones.
    transform: called with each sample.
    shuffle: the size of the buffer through which samples are mixed, files being in random order;
        0: all in order.
    seed: of the random order; each epoch has its own (`set_epoch`).
    rank, world_size: which of how many processes this is that share the samples.
    on_error: "raise"; "skip": leave out samples that can't be read, and count them in `skipped`.

    Raises:
        SourceError: a file is missing, damaged, cut short or no tar file; which one, and where.
    """

    def __init__(
        self,
        urls_or_paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        fields: Sequence[str] | None = None,
        *,
        decode: bool | dict[str, Decoder] = True,
        transform: Callable[[Any], Any] | None = None,
        shuffle: int = 0,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        on_error: str = "raise",
    ) -> None:
        super().__init__(urls_or_paths, shuffle, seed, rank, world_size, on_error, transform)
        self.fields = None if fields is None else tuple(fields)
        self.decoders: dict[str, Decoder] = {}
        if decode is not False:
            self.decoders = {**DECODERS, **(decode if isinstance(decode, dict) else {})}

    def index_of(self, source: Any) -> TarIndex:
        """The members of each sample."""
        return index_of(source)

    def sample(self, source: Any, file: int, number: int) -> Any:
        """One sample: read, decoded, chosen from."""
        found: dict[str, Any] = {}
        for name, offset, size in self.indices[file].members(number):
            key, field = key_and_field(name)
            found["__key__"] = key
            if field in found:
                raise ValueError(f"two members for the field {field!r} of sample {key!r}")
            if not self._wants(field):
                continue
            data = source.read(offset, size)
            decoder = decoder_of(field, self.decoders)
            try:
                found[field] = data if decoder is None else decoder(data)
            except Exception as error:
                raise ValueError(f"member {name!r} at offset {offset}: {error}") from error
        if self.fields is None:
            return found
        return tuple([self._choose(found, wanted) for wanted in self.fields])

    def _wants(self, field: str) -> bool:
        return self.fields is None or any(field in f.split(";") for f in self.fields)

    def _choose(self, found: dict[str, Any], wanted: str) -> Any:
        for name in wanted.split(";"):
            if name in found:
                return found[name]
        there = ", ".join(sorted(found.keys() - {"__key__"})) or "none of them"
        raise ValueError(f"sample {found.get('__key__')!r} has no field {wanted!r}, but {there}")
