"""Published and invented attacks on `load`: all refused by a sentence, and nothing runs."""

import io
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import flambeau
from flambeau.serialization import get_unsafe_globals_in_checkpoint, load, safe_globals
from tests.serialization import attack_files as attacks
from tests.serialization.attack_files import P2, P4, PICKLES, STREAMS, archive_of, whole

# What `load` raises: RuntimeError covers NotImplementedError; EOFError is for an empty file.
REFUSALS = (pickle.UnpicklingError, RuntimeError, EOFError)
ROOT = Path(__file__).parents[2]


def refused(content):
    """Load must fail, at once, with a documented error whose sentence is short."""
    start = time.perf_counter()
    with pytest.raises(REFUSALS) as caught:
        load(io.BytesIO(content))
    assert time.perf_counter() - start < 5
    assert len(str(caught.value)) < 60_000
    return str(caught.value)


@pytest.mark.parametrize("name", PICKLES)
def test_hostile_pickles_are_refused(name):
    message = refused(archive_of(PICKLES[name]))
    words = ("Weights only load failed", "PytorchStreamReader", "restore data", "not supported")
    assert any(word in message for word in words)


@pytest.mark.parametrize("name", STREAMS)
def test_hostile_streams_are_refused(name):
    refused(STREAMS[name])


@pytest.mark.parametrize("gadget", attacks.GADGETS)
def test_no_gadget_is_found(gadget):
    message = refused(archive_of(PICKLES[f"{gadget} called"]))
    assert "was not an allowed global by default" in message or "is blocked" in message


def test_the_honest_tensor_loads():
    """The pieces that the attacks are made of are right when nothing is changed."""
    found = load(io.BytesIO(archive_of(whole(attacks.tensor()))))
    assert found._data.tobytes() == attacks.STORAGE
    state = attacks.call(
        attacks.FROM_TYPE, attacks.V2, attacks.TENSOR, attacks.V2_ARGUMENTS, {"note": 1}
    )
    assert load(io.BytesIO(archive_of(whole(state)))).note == 1


AUDITED = """
import json, os, pickle, sys
sys.path.insert(0, sys.argv[2])
import flambeau
from flambeau import nn
from flambeau.serialization import load, save
from flambeau.serialization.safetensors import SafetensorError

folder = sys.argv[1]
# What an honest load imports is imported before the watch begins.
honest = os.path.join(folder, "honest")
for new in (True, False):
    value = {"a": nn.Linear(2, 2).state_dict(), "p": nn.Parameter(flambeau.ones(2)),
             "s": flambeau.eye(2).to_sparse()}
    save(value, honest, _use_new_zipfile_serialization=new)
    load(honest)
names = sorted(os.listdir(folder))
paths = [os.path.join(folder, name) for name in names]
for path in paths[:40]:
    try:
        load(path)
    except Exception:
        pass
violations, watching = [], False
current = None
# ctypes.cdata: how flambeau reads where an array lies; calls and libraries have other events.
QUIET = {"mmap.__new__", "builtins.id", "ctypes.cdata"}

def watch(event, arguments):
    if not watching or event in QUIET or (event == "open" and arguments[0] == current):
        return
    violations.append([current, event, repr(arguments)[:200]])

sys.addaudithook(watch)
outcome = {}
for current in paths:
    watching = True
    try:
        load(current)
        outcome[current] = "loaded"
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        outcome[current] = "refused"
    except BaseException as error:
        outcome[current] = repr(error)[:200]
    try:
        if open(current, "rb").read(2) == b"PK":
            load(current, mmap=True)
    except (pickle.UnpicklingError, RuntimeError):
        pass
    watching = False
print(json.dumps([outcome, violations]))
"""


def test_no_attack_runs_opens_or_imports_anything(tmp_path):
    """Under an audit hook that allows opening the very file, mapping it, and hardly more."""
    for number, (name, content) in enumerate(attacks.attack_files()):
        (tmp_path / f"{number:04} {name.replace('/', '_')[:80]!a}").write_bytes(content)
    command = [sys.executable, "-c", AUDITED, str(tmp_path), str(ROOT)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    outcome, violations = json.loads(result.stdout)
    assert violations == [], {event for _, event, _ in violations}
    surprises = {path: end for path, end in outcome.items() if end != "refused"}
    assert set(surprises) == {str(tmp_path / "honest")}
    assert len(outcome) > 1000


LIMITED = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from flambeau.serialization import load
for path in sys.argv[3:4]:
    try:
        load(path)
    except (RuntimeError, Exception):
        pass
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import os
for name in sorted(os.listdir(sys.argv[1])):
    try:
        load(os.path.join(sys.argv[1], name))
    except Exception as error:
        if isinstance(error, MemoryError):
            print(name, repr(error))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if peak - before > 40_000:  # KiB
        print(name, peak - before)
        before = peak
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts resident pages")
def test_no_attack_allocates_more_than_its_file_justifies(tmp_path):
    """Files of at most 100 KB, or few more: the process may not grow by 40 MB on any of them."""
    folder = tmp_path / "files"
    folder.mkdir()
    for number, (name, content) in enumerate(attacks.attack_files()):
        if "on the stack" in name or "as INST" in name:
            continue
        (folder / f"{number:04} {name.replace('/', '_')[:80]!a}").write_bytes(content)
    honest = tmp_path / "honest"
    honest.write_bytes(archive_of(whole(attacks.tensor())))
    command = [sys.executable, "-c", LIMITED, str(folder), str(ROOT), str(honest)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr


# ---- what is allowed, and must stay harmless


def test_containers_that_hold_themselves():
    found = load(io.BytesIO(archive_of(P2 + b"]q\x00h\x00a.")))
    assert found[0] is found
    found = load(io.BytesIO(archive_of(P2 + b"}q\x00X\x01\x00\x00\x00ah\x00s.")))
    assert found["a"] is found


@pytest.mark.parametrize(
    "content",
    [
        P2 + b"N" + b"\x85" * attacks.DEEP + b".",
        P2 + b"]" * attacks.DEEP + b"a" * (attacks.DEEP - 1) + b".",
        P2 + b"}N" * attacks.DEEP + b"N" + b"s" * attacks.DEEP + b".",
        P2 + b"(" * attacks.DEEP + b"t" * attacks.DEEP + b".",
    ],
    ids=["tuples", "lists", "dicts", "marks"],
)
def test_deep_nesting_needs_no_recursion(content):
    assert load(io.BytesIO(archive_of(content))) is not None


def test_a_huge_memo_index_takes_one_entry():
    assert load(io.BytesIO(archive_of(P2 + b"K\x05r\xff\xff\xff\xff0j\xff\xff\xff\xff."))) == 5


def test_python_2_names_lead_nowhere_else():
    for name in ("__builtin__\neval", "cPickle\nloads", "commands\ngetoutput", "os\nsystem"):
        refused(archive_of(f"\x80\x02c{name}\n)R.".encode("latin1")))


class Pair:
    """A class of the user's that shares its arguments with others."""

    def __init__(self, values, number):
        self.values, self.number = values, number

    def __reduce__(self):
        return Pair, (self.values, self.number)


def test_honest_sharing_is_no_attack():
    """Many objects of a user's class may be made with the same long list."""
    values = list(range(1000))
    sink = io.BytesIO()
    flambeau.save([Pair(values, n) for n in range(1000)], sink)
    with safe_globals([Pair]):
        found = load(io.BytesIO(sink.getvalue()))
    assert found[0].values is found[999].values


# ---- NumPy by the user's word


NUMPY = [
    np._core.multiarray._reconstruct, np._core.multiarray.scalar, np._core.numeric._frombuffer,
    np.ndarray, np.dtype, type(np.dtype("f8")), type(np.dtype("O")), type(np.dtype("U3")),
    type(np.dtype("i4")), type(np.dtype("?")), type(np.dtype("c16")),
]  # fmt: skip


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "value",
    [
        np.arange(6.0).reshape(2, 3), np.arange(6, dtype="i4").T, np.zeros((0, 3)), np.float64(2.5),
        np.array(["ab", "c"]), np.array([True, False]), np.asfortranarray(np.ones((2, 3)) * 1j),
        np.arange(3, dtype=">f8"), np.dtype(">i4"),
    ],
    ids=repr,
)  # fmt: skip
def test_arrays_load_by_the_users_word(value, protocol):
    sink = io.BytesIO()
    flambeau.save([value], sink, pickle_protocol=protocol)
    content = sink.getvalue()
    with pytest.raises(pickle.UnpicklingError, match="numpy"):
        load(io.BytesIO(content))
    with safe_globals(NUMPY):
        found = load(io.BytesIO(content))[0]
    if isinstance(value, np.dtype):
        assert found == value
        return
    assert found.dtype == pickle.loads(pickle.dumps(value, protocol)).dtype
    assert np.array_equal(found, value)


RECONSTRUCT = attacks.named("numpy._core.multiarray._reconstruct")
DTYPE = attacks.named("numpy.dtype")
NDARRAY = attacks.named("numpy.ndarray")
SCALAR = attacks.named("numpy._core.multiarray.scalar")
EMPTY = attacks.call(RECONSTRUCT, NDARRAY, (0,), "b")
F8 = attacks.call(DTYPE, "f8", False, True)
BYTES = attacks.call(attacks.ENCODE, "a" * 8, "latin1")
NUMPY_ATTACKS = {
    "objects": attacks.call(DTYPE, "O8", False, True),
    "objects in a struct": attacks.call(DTYPE, "f8,O"),
    "voids": attacks.call(DTYPE, "V8"),
    "a list": attacks.call(DTYPE, [("a", "O")]),
    "a dict": attacks.call(DTYPE, {"names": ["a"], "formats": ["O"]}),
    "a type": attacks.call(DTYPE, attacks.named("builtins.set")),
    "fields": attacks.built(F8, (3, "<", None, ("a",), {"a": (F8, 0)}, 8, 8, 0)),
    "a subdtype": attacks.built(F8, (3, "<", (F8, (2,)), None, None, -1, -1, 0)),
    "another itemsize": attacks.built(F8, (3, "<", None, None, None, 2**30, 8, 0)),
    "another version": attacks.built(F8, (4, "<", None, None, None, -1, -1, 0, {})),
    "no byte order": attacks.built(F8, (3, "<\0", None, None, None, -1, -1, 0)),
    "a large array": attacks.call(RECONSTRUCT, NDARRAY, (2**40,), "b"),
    "another class": attacks.call(RECONSTRUCT, attacks.named("numpy.dtype"), (0,), "b"),
    "an array called": attacks.call(NDARRAY, (2**40,)),
    "an array made": attacks.Raw(NDARRAY + attacks.code(((2**40,),)) + b"\x81"),
    "content too short": attacks.built(EMPTY, (1, (2,), F8, False, BYTES)),
    "content too long": attacks.built(EMPTY, (1, (), F8, False, attacks.call(
        attacks.ENCODE, "a" * 16, "latin1"))),
    "content a list": attacks.built(EMPTY, (1, (1,), F8, False, [1])),
    "a negative shape": attacks.built(EMPTY, (1, (-1,), F8, False, BYTES)),
    "a huge shape": attacks.built(EMPTY, (1, (2**40, 2**40), F8, False, BYTES)),
    "a shape that overflows": attacks.built(EMPTY, (1, (2**32, 2**32), F8, False, BYTES)),
    "no dtype": attacks.built(EMPTY, (1, (1,), "f8", False, BYTES)),
    "a short scalar": attacks.call(SCALAR, attacks.call(DTYPE, "c16"), BYTES),
    "a scalar of text": attacks.call(SCALAR, F8, "aaaaaaaa"),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMPY_ATTACKS)
def test_numpy_is_harmless_even_by_the_users_word(name):
    with safe_globals(NUMPY):
        refused(archive_of(whole(NUMPY_ATTACKS[name])))


def test_numpys_own_dtypes_stay_as_they_are():
    swapped = attacks.built(attacks.call(DTYPE, "f8", False, False), (
        3, ">", None, None, None, -1, -1, 0))  # fmt: skip
    with safe_globals(NUMPY):
        assert load(io.BytesIO(archive_of(whole(swapped)))) == np.dtype(">f8")
    assert np.dtype("f8").isnative


# ---- looking without loading


@pytest.mark.parametrize(
    "content",
    [
        P4 + b"\x8c\x02os\x8c\x06system\x8c\x0bcollections\x8c\x0bOrderedDict00\x93.",
        P4 + b"\x8c\x0bcollections\x8c\x0bOrderedDictU\x02osU\x06system\x93.",
        P4 + b"\x8c\x02os\x8c\x06system(\x8c\x0bcollections\x8c\x0bOrderedDict1\x93.",
        P4 + b"\x8c\x02os\x94N\x8c\x01a\x94000h\x00\x8c\x06system\x93.",
        b"(X\x02\x00\x00\x00idios\nsystem\n.",
        P2 + b"cos\nsystem\n.",
    ],
    ids=["popped", "old strings", "pop mark", "memo", "INST", "GLOBAL"],
)
def test_inspection_cannot_be_led_astray(content):
    found = get_unsafe_globals_in_checkpoint(io.BytesIO(archive_of(content)))
    assert found == ["os.system"]


def test_inspection_of_computed_names():
    content = P4 + attacks.call(attacks.OD) + b"\x8c\x06system\x93."
    with pytest.raises(ValueError, match="computes the name"):
        get_unsafe_globals_in_checkpoint(io.BytesIO(archive_of(content)))
    content = archive_of(P2 + b"\x82\x05.")
    assert get_unsafe_globals_in_checkpoint(io.BytesIO(content)) == ["copyreg.extension_5"]


def test_environment_is_untouched():
    before = dict(os.environ)
    for name in ("os.system called", "posix.system called"):
        refused(archive_of(PICKLES[name]))
    assert dict(os.environ) == before
