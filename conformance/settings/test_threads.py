"""Settings of threads beside PyTorch's: what they flush, who works, how many forks run at once, and
what a thread has for itself.
"""

from __future__ import annotations

import os

import pytest

import flambeau
from conformance.settings import threads
from conformance.settings.children import LIBRARIES, check, in_a_child
from flambeau._core.missing import NotImplementedInFlambeau


def test_small_numbers_are_flushed_in_every_thread_of_the_pool() -> None:
    """PyTorch's pool takes it over from its caller when it begins; ours at every switch."""
    here, there = (in_a_child(threads.numbers_flushed, library) for library in LIBRARIES)
    assert here[:2] == there[:2]
    few, many = 64, threads.LARGE
    if there[0]:  # a processor that can
        assert here == [True, [0, 0], True, [few, many], True, [0, 0]]
        assert [left[0] for left in there[1::2]] == [0, few, 0]


@pytest.mark.parametrize("number", [1, 2])
def test_all_pools_follow_the_number_of_threads(number: int) -> None:
    """That of kernels, that of BLAS for products, and that of LAPACK."""
    if (os.cpu_count() or 1) < number:
        pytest.skip("there is one processor")
    here, there = (in_a_child(threads.work_of_others, library, number) for library in LIBRARIES)
    if number == 1:
        assert not any(here.values())
    assert {name: shared for name, shared in here.items() if there[name]} == {
        name: True for name, shared in there.items() if shared
    }


@pytest.mark.parametrize("allowed", [1, 3])
def test_so_many_forks_run_at_once_beside_their_caller(allowed: int) -> None:
    here, there = (in_a_child(threads.forks_at_once, library, allowed) for library in LIBRARIES)
    assert here == there
    assert there["at once"] == allowed
    assert not there["here"]


DEVICES = """
start()
torch.set_default_device("meta")
r1 = on(0, lambda: str(torch.empty(0).device))
r2 = on(1, lambda: str(torch.empty(0).device))
enter(1, lambda: torch.device("meta"))
enter(1, lambda: torch.device("cpu"))
r3 = on(1, lambda: str(torch.empty(0).device))
leave(1)
r4 = on(1, lambda: str(torch.empty(0).device))
r5 = together(lambda: str(torch.empty(0).device))
leave(1)
r6 = on(1, lambda: str(torch.empty(0).device))
enter(0, lambda: torch.device("cpu"))
r7 = on(0, lambda: str(torch.empty(0).device))
leave(0)
r8 = on(0, lambda: str(torch.empty(0).device))
start()
r9 = on(2, lambda: str(torch.empty(0).device))
r10 = on(0, lambda: torch.set_default_device("nowhere"))
r11 = on(0, lambda: str(torch.empty(0).device))
"""


def test_every_thread_has_its_default_device() -> None:
    """Contexts nest, and end with the device that was there before."""
    assert check(DEVICES).difference is None


def test_layouts_of_mkldnn_name_themselves() -> None:
    """PyTorch has them; what is missing here says so."""
    with pytest.raises(NotImplementedInFlambeau, match=r"torch\.Tensor\.to_mkldnn"):
        flambeau.ones(2).to_mkldnn()
    with pytest.raises(NotImplementedInFlambeau, match=r"torch\.utils\.mkldnn"):
        flambeau.utils.mkldnn.to_mkldnn(flambeau.nn.Linear(2, 2))
