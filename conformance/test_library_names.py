"""Names that libraries import from PyTorch's own files, and what they do there and here."""

from __future__ import annotations

import copy
import importlib
import io
import weakref
from typing import Any

import pytest

import flambeau
from conformance.side_by_side import attempt, compare
from flambeau._core.absent_modules import find_absent
from flambeau._core.missing import NotImplementedInFlambeau
from flambeau.library.vision import nms


def part(library: Any, name: str) -> Any:
    return importlib.import_module(f"{library.__name__}.{name}")


def test_how_arguments_of_to_are_read():
    def scenario(t: Any) -> Any:
        parse = part(t, "_C")._nn._parse_to
        answers = [
            parse(), parse("cpu"), parse(t.float16), parse("cpu", t.float16, True),
            parse(t.ones(1)), parse(dtype=t.half, memory_format=t.channels_last),
            attempt(parse, "cpu", t.int32, copy=True),
        ]  # fmt: skip
        return [str(answer) for answer in answers]

    compare(scenario)


def test_records_of_an_archive():
    def scenario(t: Any) -> Any:
        file = io.BytesIO()
        t.save({"a": t.arange(3)}, file)
        file.seek(0)
        reader = t.PyTorchFileReader(file)
        storage = reader.get_storage_from_record("data/0", 3, t.int64).untyped_storage()
        return [
            sorted(reader.get_all_records()), reader.has_record("nope"),
            reader.get_record("version"), reader.get_record_size("data/0"),
            list(storage), type(attempt(t.PyTorchFileReader, 3)).__name__,
            str(attempt(t.PyTorchFileReader, "/nope")),
        ]  # fmt: skip

    compare(scenario)


def test_lists_of_tensors_by_device_and_dtype():
    def scenario(t: Any) -> Any:
        group = part(t, "utils._foreach_utils")._group_tensors_by_device_and_dtype
        a, b = t.ones(1), t.ones(2).double()
        groups = group([[a, b, a], [None, a, None], []], with_indices=True)
        told = sorted((str(key), places) for key, (_, places) in groups.items())
        return told, [str(groups[a.device, a.dtype][0])], type(attempt(group, [[a], [a, a]]))

    compare(scenario)


def test_weak_dictionaries_by_identity():
    def scenario(t: Any) -> Any:
        held = part(t, "utils.weak").WeakIdKeyDictionary()
        a, b = t.ones(2), t.ones(2)
        held[a] = 1
        answers = [len(held), a in held, b in held, held.get(b), held[a]]
        del a
        return [*answers, len(held)]

    compare(scenario)


def test_weak_dictionaries_joined_and_copied():
    def scenario(t: Any) -> Any:
        weak = part(t, "utils.weak")
        a, b, value = t.ones(2), t.ones(2), [1]
        held, others = weak.WeakIdKeyDictionary({a: value}), weak.WeakTensorKeyDictionary({b: [2]})
        joined = held | others, {b: 5} | held, others | {b: 7}
        answers: list[Any] = [[type(d).__name__, list(d.values())] for d in joined]
        answers += [attempt(lambda: held | 5).kind, attempt(lambda: [(b, 7)] | held).kind]
        copied = copy.deepcopy(held)
        answers += [list(copied)[0] is a, copied[a] is value, copied == held, held == {a: [1]}]
        held |= [(b, 9)]
        answers += [len(held), [key() is a or key() is b for key in held.keyrefs()]]
        answers += [held.popitem()[1], held.pop(a), attempt(held.popitem).text]
        reference = weak.WeakIdRef(a, answers.append)
        answers += [
            reference == weak.WeakIdRef(a),
            reference == weak.WeakIdRef(b),
            reference() is a,
        ]
        answers += [isinstance(reference, weakref.ref)]
        return answers

    compare(scenario)


def test_numbers_that_tell_storages_apart():
    def scenario(t: Any) -> Any:
        x, y = t.arange(6.0), t.zeros(0)
        own = x.untyped_storage()._cdata
        same = [x[2:], x.view(2, 3).t(), x.detach(), x.data, y.set_(x), t.ones(2).set_(x)]
        other = [x.clone(), t.zeros(0), x + 1]
        answers = [v.untyped_storage()._cdata == own for v in same + other]
        x.resize_(1000)
        typed = x.storage()._cdata, t.storage.TypedStorage([1, 2])._cdata
        return answers, [n == x.untyped_storage()._cdata for n in typed], type(own)

    compare(scenario)


def test_regions_without_autocast():
    def scenario(t: Any) -> Any:
        C, x = part(t, "_C"), t.ones(2, 2)
        answers = []
        for kind in ("AutocastCPU", "AutocastCUDA"):
            keys = C.DispatchKeySet(getattr(C.DispatchKey, kind))
            with t.autocast("cpu"), C._ExcludeDispatchKeyGuard(keys):
                answers += [str(t.mm(x, x).dtype), t.is_autocast_enabled("cpu"), repr(keys)]
        return answers

    compare(scenario)


def test_tensors_of_one_example():
    def scenario(t: Any) -> Any:
        F = part(t, "_C._functorch")
        told: list[Any] = []

        def look(x: Any) -> Any:
            told.append([F.is_batchedtensor(x), F.get_unwrapped(x).shape[0]])
            return x

        t.func.vmap(look)(t.ones(3, 2))
        return told, F.is_batchedtensor(t.ones(1))

    compare(scenario)


def test_seeds_of_workers_and_kinds_of_text():
    def scenario(t: Any) -> Any:
        state = part(t, "utils.data._utils.worker")._generate_state
        pattern = part(t, "utils.data._utils.collate").np_str_obj_array_pattern
        kinds = [bool(pattern.search(kind)) for kind in ("<U3", "|S1", "object", "O", "a", "f4")]
        return state(12345678901234, 3), state(0, 0), kinds

    compare(scenario)


def test_settings_of_a_compiler_that_is_not_there():
    def scenario(t: Any) -> Any:
        config = part(t, "_dynamo").config
        with config.patch(verbose=True):
            inside = config.verbose
        return inside, config.verbose, config.cache_size_limit, str(attempt(getattr, config, "no"))

    compare(scenario)


def test_divergences_of_classes_that_are_no_distributions():
    def scenario(t: Any) -> Any:
        register = part(t, "distributions.kl").register_kl
        return callable(register(int, int)), attempt(register, 3, int)

    compare(scenario)


def test_all_distributions_are_seen_by_who_looks_through_them():
    found = vars(flambeau.distributions)
    assert {"Bernoulli", "Wishart", "kl_divergence"} <= set(found)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("distributed.fsdp", "FullyShardedDataParallel"),
        ("_dynamo.eval_frame", "OptimizedModule"),
        ("_subclasses.meta_utils", "MetaConverter"),
        ("onnx", "export"),
    ],
)
def test_what_is_absent_can_be_imported_and_refuses_by_name(module: str, name: str):
    made = find_absent(f"flambeau.{module}") or importlib.import_module(f"flambeau.{module}")
    found = getattr(made, name)
    assert not isinstance(found, type) or not isinstance(flambeau.ones(1), found)
    with pytest.raises(NotImplementedInFlambeau, match=f"torch.{module}.{name}"):
        found()


def test_boxes_that_stay():
    boxes = flambeau.tensor([[0.0, 0, 4, 4], [1, 1, 5, 5], [0, 0, 4, 3.9], [9, 9, 10, 10]])
    scores = flambeau.tensor([0.5, 0.9, 0.8, 0.1])
    assert nms(boxes, scores, 0.5).tolist() == [1, 2, 3]
    assert nms(boxes, scores, 0.1).tolist() == [1, 3]
