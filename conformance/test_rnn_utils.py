"""`nn.utils.rnn`: packing, padding and back, their gradients and errors, beside PyTorch's."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from conformance.side_by_side import attempt, compare

LENGTHS = [[4, 3, 1], [2, 4, 3], [4, 4, 4], [1, 2, 2], [3]]


@pytest.mark.parametrize(
    ("lengths", "batch_first", "as_tensor"),
    list(itertools.product(LENGTHS, [False, True], [False, True])),
)
def test_pack_and_pad(lengths: list[int], batch_first: bool, as_tensor: bool):
    def scenario(torch: Any) -> Any:
        R = torch.nn.utils.rnn
        shape = (len(lengths), 4, 2) if batch_first else (4, len(lengths), 2)
        x = torch.randn(shape, requires_grad=True)
        given = torch.tensor(lengths) if as_tensor else lengths
        packed = R.pack_padded_sequence(x, given, batch_first, enforce_sorted=False)
        (packed.data**2).sum().backward()
        results = [type(packed), list(packed), x.grad]
        results.append(attempt(R.pack_padded_sequence, x, given, batch_first))
        results.append(R.pad_packed_sequence(packed, not batch_first, -1.5))
        results.append(R.pad_packed_sequence(packed, batch_first, total_length=6))
        results.append(attempt(R.pad_packed_sequence, packed, total_length=2))
        results.append(R.unpack_sequence(packed))
        padded, sizes = R.pad_packed_sequence(packed, batch_first=True)
        results.append(R.unpad_sequence(padded, sizes, batch_first=True))
        padded.sum().backward()
        return [*results, sizes, x.grad]

    compare(scenario)


@pytest.mark.parametrize("padding_side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_sequences(batch_first: bool, padding_side: str):
    def scenario(torch: Any) -> Any:
        R = torch.nn.utils.rnn
        many = [torch.randn(n, 2, requires_grad=True) for n in (2, 4, 1)]
        padded = R.pad_sequence(many, batch_first, 3.0, padding_side)
        (padded**3).sum().backward()
        packed = R.pack_sequence(many, enforce_sorted=False)
        flat = R.pad_sequence([torch.arange(3), torch.arange(5)], batch_first)
        lengths = torch.tensor([2, 4, 1])
        back = R.unpad_sequence(padded.detach().clone(), lengths, batch_first)
        return [padded, [one.grad for one in many], list(packed), flat, back,
                R.pad_sequence(torch.randn(2, 3), batch_first), R.unpack_sequence(packed),
                R.pack_sequence([torch.ones(3), torch.ones(2)])]  # fmt: skip

    compare(scenario)


def test_packed_sequences_as_objects():
    def scenario(torch: Any) -> Any:
        R = torch.nn.utils.rnn
        packed = R.pack_sequence([torch.ones(1, 2), torch.ones(3, 2)], enforce_sorted=False)
        results: list[Any] = [
            [type(made), made.data] for made in (
                packed.double(), packed.half(), packed.long(), packed.int(), packed.short(),
                packed.char(), packed.byte(), packed.float(), packed.cpu(), packed.to("cpu"),
                packed.to(torch.float64), packed.to(dtype=torch.int16),
            )
        ]  # fmt: skip
        results += [packed.to("cpu") is packed, packed.float() is packed, packed.cpu() is packed]
        results += [packed.is_cuda, packed.is_pinned(), list(packed.double()), len(packed)]
        results += [packed.sorted_indices, packed.unsorted_indices, packed._fields]
        results.append(R.invert_permutation(torch.tensor([2, 0, 3, 1])))
        results.append(R.invert_permutation(None))
        old = R.PackedSequence((torch.ones(2), torch.tensor([1, 1])))
        data, sizes, order, inverse = R.PackedSequence(
            torch.ones(2), torch.tensor([2]), torch.tensor([1, 0])
        )
        results += [
            list(old),
            data,
            sizes,
            order,
            inverse,
            attempt(R.PackedSequence, torch.ones(2)),
        ]
        first, *others = packed
        return [*results, first, others, str(packed)]

    compare(scenario)


def test_errors():
    def scenario(torch: Any) -> Any:
        R, x = torch.nn.utils.rnn, torch.randn(4, 3, 2)
        return [
            attempt(R.pack_padded_sequence, x, [4, 3]),
            attempt(R.pack_padded_sequence, x, [4, 3, 0]),
            attempt(R.pack_padded_sequence, x, [4, 3, -1]),
            attempt(R.pack_padded_sequence, x, [3, 4, 1]),
            attempt(R.pack_padded_sequence, x, torch.tensor([[4, 3, 2]])),
            attempt(R.pack_padded_sequence, torch.randn(4, 0, 2), []),
            attempt(R.pack_padded_sequence, torch.randn(0, 3, 2), [1, 1, 1]),
            attempt(R.pad_sequence, 3),
            attempt(R.pad_sequence, []),
            attempt(R.pad_sequence, [torch.ones(2)], padding_side="top"),
            attempt(R.pad_sequence, [torch.ones(2, 3), torch.ones(2, 2)]),
            attempt(R.pack_sequence, [torch.ones(1), torch.ones(2)]),
            attempt(R.pack_sequence, []),
            attempt(R.unpad_sequence, torch.ones(2, 3), torch.tensor([1, 2, 3]), True),
            attempt(R.invert_permutation, torch.tensor([0, 5])),
        ]

    compare(scenario)
