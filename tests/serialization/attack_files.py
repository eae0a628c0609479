"""Hostile checkpoints, each with a name: what the tests load, and what the fuzzers start from.

An attack is the content of a whole file. `PICKLES` are put into an honest zip archive with one
storage "0" of 24 bytes; `STREAMS` are files of the format before PyTorch 1.6.
"""

import io
import pickle
import struct

from flambeau.serialization.archive_writer import ArchiveWriter

STORAGE = bytes(range(24))  # six float32
P2, P4 = b"\x80\x02", b"\x80\x04"
DEEP = 100_000


def archive_of(content, storages=None, **records):
    """A checkpoint with a hand-written pickle."""
    sink = io.BytesIO()
    writer = ArchiveWriter(sink, "archive")
    writer.write("data.pkl", content)
    for name, record in records.items():
        writer.write(name, record)
    for key, array in ({"0": STORAGE} if storages is None else storages).items():
        writer.write(f"data/{key}", array)
    writer.finish()
    return sink.getvalue()


# ---- an assembler for pickles


class Raw(bytes):
    """Opcodes that leave one value on the stack."""


def code(value):
    """The opcodes for a plain value; Raw stands for itself, containers may hold it."""
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, tuple):
        return b"(" + b"".join(map(code, value)) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(map(code, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(code(k) + code(v) for k, v in value.items()) + b"u"
    # Without PROTO, STOP and what the C pickler puts into the memo.
    plain = pickle.dumps(value, 2)[2:-1]
    return plain.removesuffix(b"q\x00") if isinstance(value, str) else plain


def named(full_name):
    module, _, name = full_name.rpartition(".")
    return Raw(f"c{module}\n{name}\n".encode())


def stack_named(module, name):
    return Raw(code(module) + code(name) + b"\x93")


def call(function, *arguments):
    return Raw(code(function) + code(arguments) + b"R")


def built(value, state):
    return Raw(code(value) + code(state) + b"b")


def storage(kind="torch.FloatStorage", key="0", numel=6, place="cpu", *more):
    return Raw(code(("storage", named(kind), key, place, numel, *more)) + b"Q")


def tensor(*more, data=None, offset=0, size=(2, 3), stride=(3, 1), grad=False, hooks=None, **kw):
    hooks = call(named("collections.OrderedDict")) if hooks is None else hooks
    data = storage(**kw) if data is None else data
    return call(
        named("torch._utils._rebuild_tensor_v2"), data, offset, size, stride, grad, hooks, *more
    )


def whole(value):
    return P2 + code(value) + b"."


# ---- globals that must not be found

GADGETS = """
    os.system posix.system nt.system sys.exit os.path.join subprocess.Popen subprocess.check_output
    builtins.eval builtins.exec builtins.getattr builtins.__import__ builtins.open builtins.compile
    builtins.print builtins.type builtins.object builtins.breakpoint builtins.map __builtin__.eval
    importlib.import_module runpy._run_code code.interact pty.spawn timeit.timeit pdb.run
    cProfile.runctx pydoc.locate webbrowser.open shutil.rmtree pathlib.Path ctypes.CDLL
    socket.create_connection functools.partial functools.reduce operator.attrgetter
    operator.methodcaller types.FunctionType types.CodeType pickle.loads copyreg._reconstructor
    copyreg.__newobj__ logging.config.listen multiprocessing.util.spawnv_passfds asyncio.run
    numpy.load numpy.core.multiarray._reconstruct numpy.ndarray numpy.dtype
    numpy._core.multiarray.scalar numpy.testing._private.utils.runstring
    torch.load torch.save torch.hub.load torch.jit.load torch.compile torch.serialization.load
    torch.storage._load_from_bytes torch._utils._import_dotted_name torch.utils.cpp_extension.load
    torch.package.PackageImporter torch.nn.Linear torch.nn.modules.linear.Linear torch.from_file
    torch.UntypedStorage.from_file torch._C._init_extension torch.tensor torch.ops.load_library
    flambeau._tensor.tensor.Tensor flambeau.serialization.load
""".split()

DOTTED = {
    "method": ("torch", "Tensor.__init__"),
    "globals of a function": ("torch._utils", "_rebuild_tensor_v2.__globals__"),
    "globals of a class": ("collections", "OrderedDict.__init__.__globals__"),
    "subclasses": ("builtins", "set.__class__.__base__"),
    "from_file": ("torch.storage", "UntypedStorage.from_file"),
    "nothing": ("", ""),
    "a NUL": ("os\0", "system"),
    "capitals": ("OS", "System"),
    "spaces": (" os", "system "),
    "a relative module": (".", "os"),
    "a lone surrogate": ("\ud800", "\udfff"),
    "a long name": ("a" * 3000, "b" * 3000),
}


def unknown_globals():
    for gadget in GADGETS:
        module, _, name = gadget.rpartition(".")
        yield f"{gadget} called", whole(call(named(gadget), "id"))
        yield f"{gadget} on the stack", P4 + call(stack_named(module, name), "id") + b"."
        yield f"{gadget} made", P2 + code(named(gadget)) + code(("id",)) + b"\x81."
        yield f"{gadget} as INST", f"(X\x02\0\0\0idi{module}\n{name}\n.".encode()
        yield f"{gadget} as OBJ", b"(" + code(named(gadget)) + code("id") + b"o."
    for name, (module, attribute) in DOTTED.items():
        yield f"dotted: {name}", P4 + call(stack_named(module, attribute), "id") + b"."


# ---- opcodes that lie, and calls that were not meant

OD = named("collections.OrderedDict")
COUNTER = named("collections.Counter")
PARAMETER = named("torch.nn.parameter.Parameter")
ENCODE = named("_codecs.encode")
TENSOR = named("torch.Tensor")
FROM_TYPE = named("torch._tensor._rebuild_from_type_v2")
V2 = named("torch._utils._rebuild_tensor_v2")
V2_ARGUMENTS = (storage(), 0, (2, 3), (3, 1), False, call(OD))
WITH_STATE = named("torch._utils._rebuild_parameter_with_state")
ADDRESS = {"data": (4096, False), "shape": (4,), "typestr": "<f4", "version": 3}
DOUBLED = Raw(b"K\x01\x85" + b"2\x86" * 60)  # 2**60 parts in 120 bytes


def opcodes():
    yield "SETITEM on a list", whole(Raw(b"]K\x00Ns"))
    yield "SETITEMS on a list", whole(Raw(b"](K\x00Nu"))
    yield "SETITEM on a tuple", whole(Raw(b")K\x00Ns"))
    yield "SETITEM on bytes", P4 + b"C\x01aK\x00K\x00s."
    yield "SETITEM on a bytearray", b"\x80\x05\x96" + struct.pack("<Q", 1) + b"aK\x00K\x00s."
    yield "SETITEM on a storage", P2 + storage() + b"K\x00K\xffs."
    yield "SETITEMS on a storage", P2 + storage() + b"(K\x00K\xffu."
    yield "SETITEM on a tensor", P2 + tensor() + code(2**40) + b"K\xffs."
    yield "SETITEMS on a tensor", P2 + tensor() + b"(" + code(2**40) + b"K\xffu."
    yield "SETITEM on a class", P2 + TENSOR + b"X\x01\x00\x00\x00aK\xffs."
    yield "APPEND to a tensor", P2 + tensor() + b"K\x01a."
    yield "APPENDS to a storage", P2 + storage() + b"(K\x01e."
    yield "ADDITEMS to a dict", P4 + b"}(K\x01\x90."
    yield "EXT1", P2 + b"\x82\x01."
    yield "EXT2", P2 + b"\x83\x01\x00."
    yield "EXT4", P2 + b"\x84\x01\x00\x00\x00."
    yield "NEXT_BUFFER", b"\x80\x05\x97."
    yield "READONLY_BUFFER", b"\x80\x05N\x98."
    yield "PERSID", b"Pstorage\n."
    yield "NEWOBJ_EX of a class", P4 + TENSOR + b")}\x92."
    yield "NEWOBJ_EX with keys of ints", P4 + PARAMETER + b"(" + tensor() + b"t}K\x01Ns\x92."
    yield "NEWOBJ_EX with a list", P4 + PARAMETER + b")]\x92."
    yield "NEWOBJ of a function", P2 + V2 + b")\x81."
    yield "NEWOBJ of a tensor", P2 + TENSOR + b")\x81."
    yield "REDUCE of a tensor", P2 + tensor() + b")R."
    yield "REDUCE of a class", whole(call(TENSOR, 1))
    yield "REDUCE with a list", P2 + OD + b"]R."
    yield "REDUCE with a tensor for arguments", P2 + OD + tensor() + b"R."
    yield "BUILD of a dict", whole(built({}, {"a": 1}))
    yield "BUILD of a tensor", whole(built(tensor(), {"_data": 1}))
    yield "BUILD of a tensor by set_", whole(built(tensor(), (storage(), 0, (99,), (1,))))
    yield "BUILD of a class", whole(built(TENSOR, {"shape": 1}))
    yield "BUILD of a function", whole(built(V2, {"__code__": 1}))
    yield "BUILD of a Counter", whole(built(call(COUNTER), {"__class__": 1}))
    yield "BUILD: a method of OrderedDict", whole(built(call(OD), {"items": OD}))
    yield "BUILD: an address", whole(built(call(OD), {"__array_interface__": ADDRESS}))
    yield "BUILD: a class", whole(built(call(OD), {"__class__": TENSOR}))
    yield "memo: absent", P2 + b"h\x07."
    yield "memo: absent, long", P2 + b"j\xff\xff\xff\xff."
    yield "memo: nothing to put", P2 + b"q\x00N."
    yield "memo: a mark to put", P2 + b"(q\x00N."
    yield "PROTO 6", b"\x80\x06N."
    yield "PROTO 255", b"\x80\xffN."
    yield "PROTO cut", b"\x80"
    yield "FRAME too long", P4 + b"\x95" + b"\xff" * 7 + b"\x7fN."
    yield "FRAME of 2**64", P4 + b"\x95" + b"\xff" * 8 + b"N."
    yield "LONG4 too long", P2 + b"\x8b\xff\xff\xff\x7fabc."
    yield "LONG4 negative", P2 + b"\x8b\xff\xff\xff\xffabc."
    yield "BINUNICODE8 too long", P4 + b"\x8d" + b"\xff" * 8 + b"."
    yield "BINUNICODE8 of 2**40", P4 + b"\x8d" + struct.pack("<Q", 2**40) + b"abc."
    yield "BINBYTES8 too long", P4 + b"\x8e" + b"\xff" * 8 + b"."
    yield "BYTEARRAY8 too long", b"\x80\x05\x96" + b"\xff" * 8 + b"."
    yield "nothing on the stack", P2 + b"."
    yield "two things on the stack", P2 + b"NN."
    yield "a mark on the stack", P2 + b"N(."
    yield "below the mark", P2 + b"N(0t0."
    yield "no end", P2 + b"N" * 1000
    yield "empty", b""


def calls():
    yield "key: parts without end", whole(Raw(b"}" + DOUBLED + b"Ns"))
    yield "key: in a set", P4 + b"\x8f(" + DOUBLED + b"\x90."
    yield "key: in a frozenset", P4 + b"(" + DOUBLED + b"\x91."
    yield "key: in an OrderedDict", whole(call(OD, [[DOUBLED, 1]]))
    yield "key: in a set that is called", whole(call(named("builtins.set"), [DOUBLED]))
    yield "key: a Counter", P2 + b"}" + call(COUNTER) + b"Ns."
    yield "repr without end", whole(call(DOUBLED))
    yield "repr without end, argument", whole(call(V2, DOUBLED, DOUBLED, 1, 1, DOUBLED, 1))
    yield "repr of a huge int", whole(tensor(offset=1 << 100_000))
    yield "OrderedDict of a dict", whole(call(OD, {"a": 1}))
    yield "OrderedDict of itself", whole(call(OD, call(OD)))
    yield "OrderedDict of text", whole(call(OD, ["ab"]))
    yield "Counter of a list", whole(call(COUNTER, ["a"]))
    yield "Counter of a tensor", whole(call(COUNTER, tensor()))
    yield "bytearray of a number", whole(call(named("builtins.bytearray"), 2**40))
    yield "bytearray of a tensor", whole(call(named("builtins.bytearray"), tensor()))
    yield "bytes of a number", whole(call(named("builtins.bytes"), 2**40))
    yield "set of a text", whole(call(named("builtins.set"), "abc"))
    yield "encode elsewhere", whole(call(ENCODE, "abc", "rot13"))
    yield "encode bytes", P4 + ENCODE + b"(C\x01aX\x06\x00\x00\x00latin1tR."
    yield "complex of texts", whole(call(named("builtins.complex"), "1", "2"))
    yield "device of a tensor", whole(call(named("torch.device"), tensor()))
    yield "device of strange text", whole(call(named("torch.device"), "cpu\0; import os"))
    yield "device of long text", whole(call(named("torch.device"), "c" * 9999))
    yield "device with a huge index", whole(call(named("torch.device"), "cuda", 2**80))
    yield "device with a negative index", whole(call(named("torch.device"), "cuda", -7))
    yield "dtype called", whole(call(named("torch.float32"), 1))
    yield "dtype unknown", whole(named("torch.float33"))
    yield "dtype of strange text", P4 + stack_named("torch", "float32; import os") + b"."
    yield "layout unknown", whole(call(named("torch.serialization._get_layout"), "torch.__class__"))
    yield "layout of a tuple", whole(call(named("torch.serialization._get_layout"), (1,)))
    yield "Size of negatives", whole(call(named("torch.Size"), (-1, 2)))
    yield "Size of texts", whole(call(named("torch.Size"), ("a",)))
    yield "Size of many", whole(call(named("torch.Size"), (1,) * 100))
    yield "Parameter of a number", whole(call(named("torch._utils._rebuild_parameter"), 1, True, 0))
    yield "Parameter made of text", P2 + PARAMETER + code(("abc",)) + b"\x81."
    yield "Parameter made of nothing", P2 + PARAMETER + b")\x81."
    yield "Parameter of ints with gradient", P2 + PARAMETER + code(
        (tensor(kind="torch.IntStorage"), True)) + b"\x81."  # fmt: skip
    yield "Parameter with state of _data", whole(
        call(WITH_STATE, tensor(), True, call(OD), {"_data": 1}))  # fmt: skip
    yield "Parameter with an address", whole(
        call(WITH_STATE, tensor(), True, call(OD), {"__array_interface__": ADDRESS}))  # fmt: skip
    yield "Parameter with slots", whole(
        call(WITH_STATE, tensor(), True, call(OD), ({}, {"__class__": 1})))  # fmt: skip
    for name in (
        "__array_interface__",
        "__array_struct__",
        "__class__",
        "_hooks",
        "shape",
        "_base",
    ):
        state = {name: ADDRESS}
        yield f"from type: sets {name}", whole(call(FROM_TYPE, V2, TENSOR, V2_ARGUMENTS, state))
    yield "from type: of a dict", whole(call(FROM_TYPE, V2, OD, V2_ARGUMENTS, {}))
    yield "from type: by a class", whole(call(FROM_TYPE, OD, TENSOR, (), {}))
    yield "from type: by itself", whole(call(FROM_TYPE, FROM_TYPE, TENSOR, (), {}))
    yield "from type: arguments", whole(call(FROM_TYPE, V2, TENSOR, [1], {}))
    yield "from type: state of ints", whole(call(FROM_TYPE, V2, TENSOR, V2_ARGUMENTS, {1: 2}))
    yield "hooks with content", whole(tensor(hooks=call(OD, [[0, V2]])))
    yield "hooks of a Parameter", whole(
        call(named("torch._utils._rebuild_parameter"), tensor(), True, {0: V2}))  # fmt: skip
    # One long value in the memo, copied again and again: quadratic in the length of the file.
    text = Raw(code("a" * 20_000) + b"q\x01")
    again = b"h\x02h\x03R" * 3000
    pair = code((text, Raw(b"X\x06\x00\x00\x00latin1")))
    yield "copies of bytes", P2 + ENCODE + b"q\x02" + pair + b"q\x03(" + again + b"t."
    content = code(({str(n): n for n in range(3000)},))
    yield "copies of a Counter", P2 + COUNTER + b"q\x02" + content + b"q\x03(" + again + b"t."
    content = code(([[n, n] for n in range(3000)],))
    yield "copies of an OrderedDict", P2 + OD + b"q\x02" + content + b"q\x03(" + again + b"t."
    state = code({f"a{n}": n for n in range(3000)})
    yield "copies of a state", P2 + state + b"q\x02(" + (OD + b")Rh\x02b") * 3000 + b"t."


# ---- storages and tensors that do not fit


def tensors():
    yield "fewer bytes than declared", whole(tensor(numel=7))
    yield "more bytes than declared", whole(tensor(numel=5))
    yield "another type than declared", whole(tensor(kind="torch.DoubleStorage"))
    yield "numel negative", whole(tensor(numel=-1))
    yield "numel of 2**62", whole(tensor(numel=2**62))
    yield "numel of 2**64 + 6", whole(tensor(numel=2**64 + 6))
    yield "numel a bool", whole(tensor(numel=True))
    yield "numel a float", whole(tensor(numel=6.0))
    yield "numel a text", whole(tensor(numel="6"))
    for key in ("../data.pkl", "/etc/passwd", "..", "", "0/", "./0", "0\0", "data/0", "1" * 9999):
        yield f"key {key[:20]!r}", whole(tensor(key=key))
    yield "key a number", whole(tensor(key=0))
    yield "key a tuple", whole(tensor(key=("0",)))
    yield "storage of no storage type", whole(tensor(kind="torch.Tensor"))
    yield "storage of a dtype", whole(tensor(kind="torch.float32"))
    yield "place unknown", whole(tensor(place="tpu:0"))
    yield "place a module", whole(tensor(place="os; import os"))
    yield "place a number", whole(tensor(place=1))
    yield "id without a tuple", P2 + b"K\x01Q."
    yield "id of nothing", P2 + b")Q."
    yield "id of another kind", whole(Raw(code(("module", TENSOR, "a", "b")) + b"Q"))
    yield "id too short", whole(Raw(code(("storage", named("torch.FloatStorage"))) + b"Q"))
    yield "id too long", whole(Raw(code(("storage", 1, 2, 3, 4, 5, 6, 7)) + b"Q"))
    yield "id of a list", P2 + code(["storage"]) + b"Q."
    # The same record, first as it is, then as something longer.
    again = tensor(kind="torch.DoubleStorage", numel=6, stride=(0, 0))
    yield "one key, two types", whole([tensor(), again])
    yield "one key, two sizes", whole([tensor(), tensor(kind="torch.ComplexFloatStorage", numel=4)])
    yield "storage too small for the view", whole(tensor(size=(3, 3)))
    yield "offset over the end", whole(tensor(offset=1))
    yield "offset negative", whole(tensor(offset=-1))
    yield "offset of 2**62", whole(tensor(offset=2**62))
    yield "offset of 2**64", whole(tensor(offset=2**64))
    yield "offset a bool", whole(tensor(offset=True))
    yield "offset a tensor", whole(tensor(offset=tensor(size=(), stride=())))
    yield "stride negative", whole(tensor(stride=(-3, 1)))
    yield "stride over the end", whole(tensor(stride=(4, 1)))
    yield "stride of 2**62", whole(tensor(stride=(2**62, 1)))
    yield "stride of 2**63", whole(tensor(stride=(2**63, 1)))
    yield "size times stride of 2**64", whole(tensor(size=(2**32 + 1, 1), stride=(2**32, 1)))
    yield "size negative", whole(tensor(size=(-2, -3)))
    yield "size of 2**63", whole(tensor(size=(2**63, 1), stride=(0, 0)))
    yield "size of 2**40 squared", whole(tensor(size=(2**40, 2**40), stride=(0, 0)))
    yield "size of floats", whole(tensor(size=(2.0, 3.0)))
    yield "size of tensors", whole(tensor(size=(tensor(), 3)))
    yield "size a number", whole(tensor(size=6))
    yield "65 dims", whole(tensor(size=(1,) * 65, stride=(1,) * 65))
    yield "ten thousand dims", whole(tensor(size=(1,) * 10_000, stride=(1,) * 10_000))
    yield "empty with huge sizes", whole(tensor(size=(0, 2**62, 2**62), stride=(1, 1, 1)))
    yield "lengths differ", whole(tensor(size=(2, 3), stride=(1,)))
    yield "requires_grad a number", whole(tensor(grad=1))
    yield "requires_grad of ints", whole(tensor(kind="torch.IntStorage", grad=True))
    yield "metadata a list", whole(tensor(["conj"]))
    yield "metadata unknown", whole(tensor({"fake": True}))
    complex64 = {"kind": "torch.ComplexFloatStorage", "numel": 3}
    yield "conj of real numbers", whole(tensor({"conj": True}))
    yield "conj a tensor", whole(tensor({"conj": tensor()}, **complex64))
    yield "neg a number", whole(tensor({"neg": 1}, **complex64))
    sparse = named("torch._utils._rebuild_sparse_tensor")
    coo = call(named("torch.serialization._get_layout"), "torch.sparse_coo")
    long = {"kind": "torch.LongStorage", "numel": 3, "size": (1, 3)}
    values = tensor(size=(3,), stride=(1,), kind="torch.LongStorage", numel=3)
    yield "sparse: places out of range", whole(call(sparse, coo, (tensor(**long), values, (9,))))
    yield "sparse: layout without end", whole(call(sparse, DOUBLED, (1, 2, 3)))
    yield "sparse: parts without end", whole(call(sparse, coo, (DOUBLED, DOUBLED, DOUBLED)))
    yield "sparse: huge sizes", whole(call(sparse, coo, (tensor(**long), values, (1 << 100_000,))))
    expanded = tensor(**{**long, "size": (1, 2**40), "stride": (0, 0)})
    many = tensor(**{**long, "size": (2**40,), "stride": (0,)})
    yield "sparse: 2**40 places", whole(call(sparse, coo, (expanded, many, (2**62,))))
    empty = tensor(**{**long, "size": (0, 2**40), "stride": (1, 1)})
    yield "sparse: places without dims", whole(call(sparse, coo, (empty, many, ())))
    yield "no storage", whole(tensor(data=1))
    yield "a tensor for a storage", whole(tensor(data=tensor()))
    yield "a storage type for a storage", whole(tensor(data=named("torch.FloatStorage")))
    v3 = named("torch._utils._rebuild_tensor_v3")
    untyped = storage("torch.storage.UntypedStorage", numel=24)
    yield "v3 without a dtype", whole(call(v3, untyped, 0, (6,), (1,), False, call(OD), "float32"))
    yield "v3 too long", whole(
        call(v3, untyped, 0, (6,), (1,), False, call(OD), named("torch.float64")))  # fmt: skip


def streams():
    """Files from before PyTorch 1.6."""
    magic = pickle.dumps(0x1950A86A20F9469CFC6C, 2)
    head = magic + pickle.dumps(1001, 2) + pickle.dumps({"little_endian": True}, 2)
    yield "magic called", whole(call(named("os.system"), "id"))
    yield "version repr without end", magic + whole(DOUBLED)
    yield "version a huge int", magic + whole(1 << 100_000)
    yield "system called", magic + pickle.dumps(1001, 2) + whole(call(named("os.system"), "id"))
    yield "system a list", magic + pickle.dumps(1001, 2) + whole([1])
    five = storage("torch.FloatStorage", "0", 6, "cpu")
    yield "id of five parts", head + whole(tensor(data=five)) + whole(["0"])
    six = {"data": storage("torch.FloatStorage", "0", 6, "cpu", None)}
    body = head + whole(tensor(**six))
    content = struct.pack("<q", 6) + STORAGE
    yield "keys called", body + whole(call(named("os.system"), "id")) + content
    yield "keys without end", body + whole([DOUBLED]) + content
    yield "keys unhashable", body + whole([[1]]) + content
    yield "keys twice", body + whole(["0", "0"]) + 2 * content
    yield "keys missing", body + whole([]) + content
    yield "length negative", body + whole(["0"]) + struct.pack("<q", -6) + STORAGE
    yield "length of 2**62", body + whole(["0"]) + struct.pack("<q", 2**62) + STORAGE
    yield "content cut", body + whole(["0"]) + content[:-1]
    for name, numel in (("huge", 2**60), ("longer than the file", 10**6)):
        data = storage("torch.FloatStorage", "0", numel, "cpu", None)
        yield f"numel {name}", head + whole(tensor(data=data)) + whole(["0"]) + content
    for name, view in {
        "outside": ("1", 4, 4), "negative": ("1", -1, 2), "huge": ("1", 2**62, 2**62),
        "of two parts": ("1", 0), "a list": ["1", 0, 6], "of texts": ("1", "0", "6"),
    }.items():  # fmt: skip
        data = storage("torch.FloatStorage", "0", 6, "cpu", view)
        yield f"view {name}", head + whole(tensor(data=data)) + whole(["0"]) + content
    yield "no magic", b"hello"
    yield "text", b"import os; os.system('id')\n"


def tar_file():
    """CVE-2025-32434: the tar format of PyTorch 0.1, whose reader knew no `weights_only`."""
    import tarfile

    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        bomb = whole(call(named("os.system"), "id"))
        for name in ("sys_info", "pickle", "tensors", "storages"):
            info = tarfile.TarInfo(name)
            info.size = len(bomb)
            archive.addfile(info, io.BytesIO(bomb))
    return sink.getvalue()


PICKLES = {name: content for part in (unknown_globals, opcodes, calls, tensors)
           for name, content in part()}  # fmt: skip
STREAMS = {**dict(streams()), "tar": tar_file()}


def attack_files():
    """Every attack as (name, content of the file)."""
    for name, content in PICKLES.items():
        yield f"zip: {name}", archive_of(content)
        yield f"stream: {name}", content
    for name, content in STREAMS.items():
        yield f"stream: {name}", content
