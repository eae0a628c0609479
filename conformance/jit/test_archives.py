"""Archives, both ways: each library loads what the other has written, and both give equal results.

"relay" is PyTorch → flambeau → PyTorch; "ours" is what flambeau itself has compiled → PyTorch.
"""

import io
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import flambeau
from conformance.jit import both
from conformance.module_samples import MODULES, assert_near, ours, samples
from flambeau.jit.archive import upgraders

pytestmark = pytest.mark.filterwarnings("ignore")

MODELS = Path(__file__).parent / "archived_models.py"
RANDOM = frozenset(("FractionalMaxPool2d", "FractionalMaxPool3d"))
"""Layers that draw numbers by torch's generator in their own way."""
SAMPLES = 2
"""Samples of each layer, spread over torch's list."""
WAYS = ("script", "trace")


# ---- compiling, saving, loading


def compiled(library, module, way, args, kwargs):
    """A module, scripted or traced by a library; None if it cannot be."""
    if way == "script":
        return library.jit.script(module)
    options = {"example_kwarg_inputs": kwargs} if kwargs else {}
    return library.jit.trace(module, None if kwargs else args, check_trace=False, strict=False,
                             **options)  # fmt: skip


def written(library, module, extra=None):
    """The bytes of an archive."""
    sink = io.BytesIO()
    library.jit.save(module, sink, _extra_files=extra)
    return sink.getvalue()


def read(library, content, **options):
    """The module of an archive."""
    return library.jit.load(io.BytesIO(content), **options)


def texts(module):
    """The code of all methods, temporaries numbered in order, by path."""
    found = {}
    for path, inner in module.named_modules():
        for name in method_names(inner):
            method = inner._c._get_method(name) if hasattr(inner, "_c") else inner.__getattr__(name)
            found[f"{path}.{name}"] = normalised(method.code)
    return found


def assert_code(module, wanted):
    """The module has the methods of torch's; hooks, too, are methods of ours."""
    found = texts(module)
    for path, code in wanted.items():
        assert found[path] == code, path


def method_names(module):
    """The methods of a compiled module of either library."""
    if hasattr(module, "_c"):
        return module._c._method_names()
    return list(module._type.methods)


def normalised(code):
    """The text with temporaries numbered in the order in which they appear."""
    names: dict[str, str] = {}
    text = re.sub(r"\b_\d+\b", lambda m: names.setdefault(m.group(0), f"t{len(names)}"), code)
    return re.sub(r"\.___torch_mangle_\d+", "", text)


def gradients(module, result):
    """Gradients of the parameters, of the sum of all floating-point results."""
    total = 0
    for tensor in tensors_in(result):
        if tensor.requires_grad:
            total = total + tensor.sum()
    if isinstance(total, int):
        return {}
    module.zero_grad()
    total.backward()
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}


def tensors_in(value):
    if hasattr(value, "requires_grad"):
        yield value
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)


def plain(value):
    """A result as arrays and plain Python values, whatever library it is from."""
    if hasattr(value, "detach"):
        return value.detach().numpy()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


def assert_equal(found, wanted, tolerance=1e-5):
    """Results of the two libraries are equal."""
    found, wanted = plain(found), plain(wanted)
    if isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, tolerance, tolerance)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        for key in wanted:
            assert_equal(found[key], wanted[key], tolerance)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_equal(one, other, tolerance)
    else:
        assert found == wanted


# ---- layers


def layer_samples(name):
    found = [sample for sample in samples(name, torch.float32) if sample.inputs is not None]
    return found[:: max(1, (len(found) + SAMPLES - 1) // SAMPLES)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", sorted(set(MODULES) - RANDOM))
def test_layers(name, way):
    """PyTorch's archive of a layer, loaded by flambeau, written again, loaded by PyTorch."""
    for sample in layer_samples(name):
        args, kwargs = tuple(sample.inputs.args), dict(sample.inputs.kwargs)
        torch.manual_seed(0)
        try:
            eager = sample.theirs(*sample.arguments, **sample.options)
            theirs = compiled(torch, eager, way, args, kwargs)
            content = written(torch, theirs)
            reference = read(torch, content)
            torch.manual_seed(1)
            wanted = reference(*args, **kwargs)
        except Exception:  # noqa: BLE001,S112 - torch cannot compile, save or run this sample
            continue
        mine = read(flambeau, content)
        flambeau.manual_seed(1)
        found = mine(*ours(args), **ours(kwargs))
        assert_near(found, wanted, 1e-5)
        grads = gradients(reference, wanted)
        found_grads = gradients(mine, found)
        assert grads.keys() == found_grads.keys()
        for key, grad in grads.items():
            assert_near(found_grads[key], grad, 1e-3)
        code = texts(reference)
        assert_code(mine, code)
        back = read(torch, written(flambeau, mine))
        torch.manual_seed(1)
        assert_near(ours(back(*args, **kwargs)), wanted, 1e-6)
        assert_code(back, code)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", sorted(set(MODULES) - RANDOM))
def test_layers_compiled_by_flambeau(name, way):
    """The archive of a layer that flambeau has scripted or traced, loaded by PyTorch."""
    for sample in layer_samples(name)[:1]:
        args, kwargs = tuple(sample.inputs.args), dict(sample.inputs.kwargs)
        torch.manual_seed(0)
        try:
            theirs, mine = sample.both()
            reference = compiled(torch, theirs, way, args, kwargs)
            written(torch, reference)
            torch.manual_seed(1)
            wanted = reference(*args, **kwargs)
        except Exception:  # noqa: BLE001,S112 - torch cannot compile, save or run this sample
            continue
        scripted = compiled(flambeau, mine, way, ours(args), ours(kwargs))
        back = read(torch, written(flambeau, scripted))
        torch.manual_seed(1)
        assert_near(ours(back(*args, **kwargs)), wanted, 1e-5)
        again = read(flambeau, written(torch, back))
        flambeau.manual_seed(1)
        assert_near(again(*ours(args), **ours(kwargs)), wanted, 1e-5)


# ---- models


def model(library, name):
    """One of the models, and its inputs."""
    module = both.load(MODELS, library)
    with both.entered(module):
        make, inputs = module.EXAMPLES[name]
        return make().eval(), inputs()


def pair(name, way):
    """A model compiled by both libraries, with the same parameters; inputs of both."""
    theirs, their_inputs = model("torch", name)
    mine, my_inputs = model("flambeau", name)
    mine.load_state_dict({key: ours(value) for key, value in theirs.state_dict().items()})
    with both.entered(both.load(MODELS, "torch")):
        reference = compiled(torch, theirs, way, their_inputs, {})
    with both.entered(both.load(MODELS, "flambeau")):
        scripted = compiled(flambeau, mine, way, my_inputs, {})
    return reference, scripted, their_inputs, my_inputs


CASES = [(name, "script") for name in (
    "resnet18", "tagger", "encoder", "encoder_padded", "encoder_norm_first", "beam_search",
    "detections", "everything", "stateful", "hooked", "constants")]  # fmt: skip
CASES += [(name, "trace") for name in ("resnet18", "tagger", "encoder", "constants", "hooked")]


@pytest.mark.parametrize(("name", "way"), CASES)
@pytest.mark.parametrize("no_grad", [False, True])
def test_models(name, way, no_grad):
    """Four archives, of each library for each library; results, code and state agree."""
    with torch.set_grad_enabled(not no_grad), flambeau.set_grad_enabled(not no_grad):
        reference, scripted, their_inputs, my_inputs = pair(name, way)
        content = written(torch, reference)
        loaded = read(torch, content)
        wanted = loaded(*their_inputs)
        mine = read(flambeau, content)
        assert_equal(mine(*my_inputs), wanted)
        assert_code(mine, texts(loaded))
        assert list(mine.state_dict()) == list(loaded.state_dict())
        back = read(torch, written(flambeau, mine))
        assert_equal(back(*their_inputs), wanted)
        assert_code(back, texts(loaded))
        for library, inputs in ((torch, their_inputs), (flambeau, my_inputs)):
            found = read(library, written(flambeau, scripted))(*inputs)
            if name == "encoder_padded" and no_grad:  # torch leaves zeros where there is padding
                found, wanted = found[0], loaded(*their_inputs)[0]
            assert_equal(found, wanted)


# ---- attributes, methods, sharing


def everything():
    """The archive of a model with attributes of all types, by torch, loaded by both libraries."""
    reference, _, _, _ = pair("everything", "script")
    content = written(torch, reference)
    return read(torch, content), read(flambeau, content)


def test_attributes_of_all_types():
    loaded, mine = everything()
    back = read(torch, written(flambeau, mine))
    for name in ("ints", "texts", "pair", "maybe", "nothing", "found", "tables", "flags", "tensors",
                 "number", "text", "complex", "scale", "kept", "dropped", "view"):  # fmt: skip
        assert_equal(getattr(mine, name), getattr(loaded, name))
        assert_equal(getattr(back, name), getattr(loaded, name))
    assert mine.where == flambeau.device("cpu")
    assert (mine.color.name, mine.color.value) == ("GREEN", 2)
    assert type(mine.found).__name__ == "Found"
    assert [name for name, _ in mine.named_parameters()] == ["weight", "view"]
    assert list(mine.state_dict()) == list(loaded.state_dict())


def test_exported_methods_and_script_classes():
    loaded, mine = everything()
    back = read(torch, written(flambeau, mine))
    for _ in range(2):
        wanted = loaded.count(3)
        assert_equal(mine.count(3), wanted)
        assert_equal(back.count(3), wanted)
    key = "a\n\"'\\"
    assert mine.describe(key) == loaded.describe(key) == back.describe(key)


def test_what_is_shared_stays_shared():
    loaded, mine = everything()
    with flambeau.no_grad():
        mine.weight[1] = 100.0
    assert float(mine.view.detach()[0]) == 100.0
    back = read(torch, written(flambeau, mine))
    with torch.no_grad():
        back.weight[2] = 7.0
        loaded.weight[2] = 7.0
    assert float(back.view[1]) == float(loaded.view[1]) == 7.0


def test_functions_are_saved_as_modules():
    module = both.load(MODELS, "flambeau")
    with both.entered(module):
        mine = flambeau.jit.script(module.suppressed)
    theirs = both.load(MODELS, "torch")
    with both.entered(theirs):
        reference = torch.jit.script(theirs.suppressed)
    boxes, scores = theirs._boxes(10), theirs._wave(10)
    wanted = reference(boxes, scores, 0.3)
    sink = io.BytesIO(mine.save_to_buffer() if hasattr(mine, "save_to_buffer") else written(
        flambeau, mine))  # fmt: skip
    assert_equal(torch.jit.load(sink)(boxes, scores, 0.3), wanted)
    loaded = read(flambeau, written(torch, reference))
    assert_equal(loaded(ours(boxes), ours(scores), 0.3), wanted)


# ---- records and places


@pytest.mark.parametrize(("writer", "reader"), [(torch, flambeau), (flambeau, torch)])
def test_extra_files(writer, reader):
    module = writer.jit.script(writer.nn.Linear(2, 3))
    extra = {"labels.txt": "cat\ndog", "raw": b"\0\1"}
    found = {"labels.txt": "", "raw": "", "absent": ""}
    read(reader, written(writer, module, extra), _extra_files=found)
    assert found == {"labels.txt": b"cat\ndog", "raw": b"\0\1", "absent": b""}


def test_map_location():
    content = written(torch, torch.jit.script(torch.nn.Linear(2, 3)))
    for place in ("cpu", flambeau.device("cpu")):
        module = read(flambeau, content, map_location=place)
        assert module.weight.device == flambeau.device("cpu")


def test_files_and_buffers(tmp_path):
    module = flambeau.jit.script(flambeau.nn.Linear(2, 3))
    path = tmp_path / "linear.pt"
    module.save(str(path))
    x = torch.ones(1, 2)
    wanted = torch.jit.load(str(path))(x)
    assert_equal(torch.jit.load(io.BytesIO(module.save_to_buffer()))(x), wanted)
    assert_equal(flambeau.jit.load(path)(ours(x)), wanted)


# ---- older archives

OLD_HEAD = "op_version_set = 1\nimport __torch__.torch.nn\n"


def old_archive(body, version):
    """An archive as older versions of torch wrote it."""
    from tests.jit.archive import handmade

    text = handmade.module(body, arguments="x: Tensor, y: Tensor, n: number", result="Tensor")
    return handmade.archive(OLD_HEAD + text, version=version)


PROGRAMS = {
    "div_tensor": "return torch.div(x, y)",
    "div_scalar": "return torch.div(x, 2)",
    "div_float": "return torch.div(x, 2.5)",
    "div_number": "return torch.div(x, n)",
    "div_in_place": "return torch.div_(torch.mul(x, 1), y)",
    "div_scalar_in_place": "return torch.div_(torch.mul(x, 1), 2)",
    "full": "return torch.full([2, 3], 7)",
    "full_float": "return torch.full([2, 3], 7.5, dtype=None)",
    "full_dtype": "return torch.full([2], 7, dtype=3)",
    "linspace": "return torch.linspace(0, 1, dtype=6, layout=None, device=None, pin_memory=None)",
    "linspace_none": "return torch.linspace(0, 1, None, dtype=None, layout=None, device=None, "
                     "pin_memory=None)",
    "linspace_steps": "return torch.linspace(0., 1., 5, dtype=None, layout=None, device=None, "
                      "pin_memory=None)",
    "logspace": "return torch.logspace(0., 1., None, 2., dtype=None, layout=None, device=None, "
                "pin_memory=None)",
    "logspace_steps": "return torch.logspace(0., 1., 4, 10., dtype=None, layout=None, device=None, "
                      "pin_memory=None)",
    "gelu": "return torch.gelu(torch.div(x, 3.))",
    "div_out": "return torch.div(x, y, out=torch.mul(x, 1))",
    "div_mode": 'return torch.div(x, y, rounding_mode="trunc")',
    "div_no_mode": "return torch.div(x, y, rounding_mode=None)",
    "div_mode_in_place": 'return torch.div_(torch.mul(x, 1), 2, rounding_mode="floor")',
    "div_mode_out": 'return torch.div(x, y, rounding_mode="floor", out=torch.mul(x, 1))',
    "full_out": "return torch.full([2, 3], 7, out=torch.mul(x, 1))",
    "linspace_out": "return torch.linspace(0, 1, 5, out=torch.mul(x, 1.))",
    "linspace_none_out": "return torch.linspace(0, 1, None, out=torch.mul(x, 1.))",
    "logspace_out": "return torch.logspace(0, 1, None, 2., out=torch.mul(x, 1.))",
    "gelu_out": "return torch.gelu(torch.mul(x, 1.), out=torch.mul(x, 1.))",
    "namespaced": "return ops.aten.add(x, y)",
}  # fmt: skip


@pytest.mark.parametrize("version", range(1, 11))
@pytest.mark.parametrize("program", PROGRAMS)
def test_old_archives(program, version):
    """Operators mean what they meant when the file was written."""
    content = old_archive(PROGRAMS[program], version)
    for dtype in (torch.int64, torch.float32):
        x, y = torch.tensor([7, -7, 9], dtype=dtype), torch.tensor([2, 2, -4])
        for n in (2, 2.0):
            assert_equal(*results(content, x, y, n))


def test_versions_of_operators():
    """Torch's own table: which operators have changed, and when; each has a program above."""
    bumped = {name: [entry.bumped_at_version for entry in entries]
              for name, entries in torch._C._get_operator_version_map().items()}  # fmt: skip
    assert {name: [version] for name, version in upgraders.VERSIONS.items()} == bumped
    assert torch._C._get_max_operator_version() == upgraders.NEWEST


@pytest.mark.parametrize("program", PROGRAMS)
def test_versions_that_are_written(program):
    found = []
    for library in (torch, flambeau):
        try:
            module = read(library, old_archive(PROGRAMS[program], 10))
        except RuntimeError:  # what today's operators no longer take
            found.append("RuntimeError")
            continue
        with zipfile.ZipFile(io.BytesIO(written(library, module))) as archive:
            names = {name.partition("/")[2] for name in archive.namelist()}
            name = {"version", ".data/version"} & names
            found.append((name, archive.read(f"archive/{min(name)}")))
    assert found[0] == found[1]


OLD_CODE = """op_version_set = 1
import __torch__.torch.nn.functional
import __torch__
class Inner(Module):
  __parameters__ = ["w", ]
  w : Tensor
  training : bool
  __annotations__ = []
  __annotations__["0"] = List[int]
  def forward(self: __torch__.Inner, x: Tensor) -> Tensor:
    _0 = torch.mul(x, torch.div(self.w, 2))
    return torch.add(_0, CONSTANTS.c0, alpha=(getattr(self, "0"))[1])
class Pair(NamedTuple):
  first : Tensor
  second : str
class M(Module):
  __parameters__ = []
  training : bool
  inner : __torch__.Inner
  def forward(self: __torch__.M, x: Tensor) -> Tuple[Tensor, str]:
    y = (self.inner).forward(x, )
    if self.training:
      z = __torch__.twice(y, )
    else:
      z = torch.div(y, 3)
    pair = __torch__.Pair(z, CONSTANTS.c1)
    return (pair.first, pair.second)
def twice(x: Tensor) -> Tensor:
  _1 = uninitialized(Tensor)
  if torch.gt(torch.len(torch.size(x)), 0):
    _2 = torch.mul(x, 2)
  else:
    ops.prim.RaiseException("Exception")
    _2 = _1
  return _2
"""


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_archives_of_pytorch_1_3(version):
    """Heads with imports, no lists of buffers, tables of constants with tensors and texts."""
    from tests.jit.archive import handmade

    tensor = handmade.tensor(kind="torch.FloatStorage", size=(2, 3), stride=(3, 1))
    inner = handmade.made("__torch__.Inner", {"w": tensor, "training": True, "0": handmade.call(
        handmade.named("torch.jit._pickle.build_intlist"), [4, 5])})  # fmt: skip
    value = handmade.made("__torch__.M", {"training": True, "inner": inner})
    table = b"\x80\x02" + handmade.code((tensor, "grün")) + b"."
    numbers = np.arange(6, dtype=np.float32).tobytes()
    content = handmade.archive(OLD_CODE, value, version, table, {"0": numbers},
                               **{"constants/0": numbers})  # fmt: skip
    found = []
    for library in (flambeau, torch):
        module = read(library, content)
        inputs = library.ones(2, 3)
        found.append([module(inputs), module.eval()(inputs), dict(module.named_parameters())])
    assert_equal(*found)


def test_archives_before_pytorch_1_3():
    """Torch 2 does not read them either."""
    from tests.jit.archive import handmade

    content = handmade.archive(**{"model.json": b"{}"})
    for library in (torch, flambeau):
        with pytest.raises(RuntimeError, match="Legacy model format is not supported"):
            read(library, content)


def results(content, *inputs):
    """What an archive gives in each library, or the kinds of their errors."""
    found = []
    for library, given in ((flambeau, ours(inputs)), (torch, inputs)):
        try:
            found.append(read(library, content)(*given))
        except RuntimeError:
            found.append("RuntimeError")
    return found
