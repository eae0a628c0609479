"""Archives put together by hand: code, pickles and records as an attacker would write them."""

import io
import textwrap

import flambeau
from flambeau.serialization.archive_writer import ArchiveWriter
from tests.serialization.attack_files import Raw, call, code, named, tensor  # noqa: F401

EMPTY_TUPLE = b"\x80\x02)."
FILE = "code/__torch__.py"


def made(name, state=None):
    """An object of a class of the archive, in a pickle."""
    return Raw(bytes(named(name)) + b")\x81" + code({} if state is None else state) + b"b")


def archive(text="", value=None, version=3, constants=EMPTY_TUPLE, storages=None, **records):
    """The bytes of an archive. text: its code; value: what data.pkl holds, a module as a rule."""
    sink = io.BytesIO()
    writer = ArchiveWriter(sink, "archive")
    writer.write(
        "data.pkl", b"\x80\x02" + code(made("__torch__.M") if value is None else value) + b"."
    )
    writer.write(FILE, text if isinstance(text, bytes) else text.encode())
    writer.write("constants.pkl", constants)
    for name, content in records.items():
        writer.write(name, content)
    for key, content in (storages or {}).items():
        writer.write(f"data/{key}", content)
    writer.finish(version)
    return sink.getvalue()


def module(body, fields="", arguments="", result="int"):
    """The code of a class `M` with one method; `body`: its lines."""
    head = f"class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n{fields}"
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    given = f", {arguments}" if arguments else ""
    return f"{head}  def forward(self: __torch__.M{given}) -> {result}:\n{lines}\n"


def load(content, **options):
    """`torch.jit.load` of bytes."""
    return flambeau.jit.load(io.BytesIO(content), **options)


def run(body, *inputs, limits=None, **options):
    """What `forward` gives whose lines are `body`."""
    return load(archive(module(body, **options)), limits=limits)(*inputs)
