"""The command `flambeau`: run PyTorch programs, look at their files, describe the installation."""

from __future__ import annotations

import functools
import io
import runpy
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from . import hook
from ._version import TORCH_API_VERSION, __version__

ExceptHook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]

HELP = f"""\
usage: flambeau [--help] [--version] <command> ...

PyTorch's API in pure Python on NumPy. Version {__version__}, API of PyTorch {TORCH_API_VERSION}.

commands:
  run SCRIPT [ARGUMENT ...]      run a PyTorch script, unchanged
  run -m MODULE [ARGUMENT ...]   run a module, as `python -m` does
  run -c CODE [ARGUMENT ...]     run the code in a string, as `python -c` does
  run --nan-guard SCRIPT ...     stop at the first operator that makes NaN or infinity
  run --advise SCRIPT ...        say at the end what the program could do better, line by line
  run --profile TRACE.json SCRIPT ...
                                 say at the end what took the time; write a trace and a flame graph
  env                            show versions, processor, threads and optional parts
  warmup [NAME ...]              compile the common kernels, so that no program has to wait for them
  warmup --library FILE [NAME ...] [-- SCRIPT ...]
                                 put kernels, of a script too, into a file that needs no LLVM
  inspect FILE                   show what a checkpoint holds; no code in it runs
  verify FILE ...                check the structure and the checksums of checkpoints
  convert A B                    .pth to .safetensors, and back
  run-archive FILE --input X.npy run a TorchScript archive
  provide-torch [--undo]         let libraries that require PyTorch find flambeau here
  names PACKAGE ...              names of PyTorch that a package uses and flambeau has not
  doctor PACKAGE ...             import a package, and say what it wants that is missing
  ops [NAME ...]                 show rows of the operator table, and what follows from each

`flambeau run` does what `python` does, with one difference: `import torch` gives flambeau.
`flambeau COMMAND --help` says more about `inspect`, `verify`, `convert`, `run-archive`,
`provide-torch`, `names`, `doctor`, `ops`.

options:
  -h, --help                     show this text
  -V, --version                  show the version

examples:
  flambeau run train.py --epochs 3
  flambeau run -m package.train
  flambeau run -c "import torch; print(torch.arange(3) * 2)"
"""

RUN_USAGE = (
    "usage: flambeau run [--nan-guard] [--advise] [--profile TRACE.json] "
    "(SCRIPT | -m MODULE | -c CODE) [ARGUMENT ...]"
)


def main(arguments: list[str] | None = None) -> int:
    """Carry out one command line; return the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if not words:
        return _fail(HELP)
    command, rest = words[0], words[1:]
    if command in {"-h", "--help", "help"}:
        return _say(HELP)
    if command in {"-V", "--version"}:
        return _say(f"flambeau {__version__} (API of PyTorch {TORCH_API_VERSION})\n")
    if command not in COMMANDS:
        return _fail(f"flambeau: no command {command!r}; `flambeau --help` lists them\n")
    return COMMANDS[command](rest)


def _say(text: str) -> int:
    sys.stdout.write(text)
    return 0


def _fail(text: str) -> int:
    sys.stderr.write(text)
    return 2


def env(arguments: list[str]) -> int:
    """`flambeau env`: what a bug report needs."""
    if arguments:
        return _fail("usage: flambeau env\n")
    from ._environment import report

    return _say(report())


def warmup(arguments: list[str]) -> int:
    """`flambeau warmup`: fill the cache of kernels, all of them or those of some kinds of work, or
    write those of some kinds and of a program to a library."""
    from ._warmup import GROUPS, fill, into_library

    words, _, program = _split(arguments, "--")
    path = None
    if words[:1] == ["--library"] and len(words) > 1:
        path, words = Path(words[1]), words[2:]
    unknown = [name for name in words if name not in GROUPS]
    if unknown or (program and path is None):
        names = "|".join(GROUPS)
        return _fail(f"usage: flambeau warmup [{names}] ...\n"
                     f"       flambeau warmup --library FILE [{names}] ... "
                     "[-- SCRIPT ARGUMENT ...]\n")  # fmt: skip
    if path is None:
        return fill(words or list(GROUPS), sys.stdout.write)
    return into_library(path, words or ([] if program else list(GROUPS)), program, sys.stdout.write)


def _split(words: list[str], mark: str) -> tuple[list[str], str, list[str]]:
    """What stands before a mark, the mark, and what stands behind it."""
    place = words.index(mark) if mark in words else len(words)
    return words[:place], mark, words[place + 1 :]


def run(arguments: list[str]) -> int:
    """`flambeau run`: the program sees itself as it would under `python`."""
    if arguments[:1] == ["--nan-guard"]:
        from .debug import nan_guard

        with nan_guard():
            return run(arguments[1:])
    if arguments[:1] == ["--advise"]:
        from .debug import advise

        with advise():
            return run(arguments[1:])
    if arguments[:1] == ["--profile"]:
        if len(arguments) < 2:
            return _fail(f"flambeau run: --profile needs the name of a file\n{RUN_USAGE}\n")
        from .debug import profile

        with profile(arguments[1]):
            return run(arguments[2:])
    if not arguments:
        return _fail(RUN_USAGE + "\n")
    first = arguments[0]
    if first in {"-h", "--help"}:
        return _say(HELP)
    if first not in {"-m", "-c"}:
        return _run_script(Path(first), arguments)
    if len(arguments) < 2:
        return _fail(f"flambeau run: {first} needs an argument\n{RUN_USAGE}\n")
    if first == "-m":
        return _run_module(arguments[1], arguments[1:])
    return _run_code(arguments[1], ["-c", *arguments[2:]])


def _from_commands(name: str) -> Callable[[list[str]], int]:
    """The command in `_commands/<name>.py`, imported when it is called for."""
    return lambda arguments: import_module(f"flambeau._commands.{name}").main(arguments)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "run": run,
    "env": env,
    "warmup": warmup,
    "inspect": _from_commands("inspect"),
    "verify": _from_commands("verify"),
    "convert": _from_commands("convert"),
    "run-archive": _from_commands("run_archive"),
    "provide-torch": _from_commands("provide_torch"),
    "names": _from_commands("names"),
    "doctor": _from_commands("doctor"),
    "ops": _from_commands("ops"),
}


def _run_script(path: Path, words: list[str]) -> int:
    try:
        with io.open_code(str(path.absolute())) as file:
            source = file.read()
    except OSError as error:
        return _fail(f"flambeau: can't open file {str(path)!r}: {error.strerror}\n")
    filename = str(path.absolute())
    main_module = ModuleType("__main__")
    main_module.__file__ = filename
    main_module.__loader__ = SourceFileLoader("__main__", filename)
    _prepare(words, str(path.resolve().parent))
    return _execute(source, filename, main_module)


def _run_code(code: str, words: list[str]) -> int:
    _prepare(words, "")
    return _execute(code, "<string>", ModuleType("__main__"))


def _run_module(name: str, words: list[str]) -> int:
    _prepare(words, str(Path.cwd()))
    runpy.run_module(name, run_name="__main__", alter_sys=True)
    return 0


def _prepare(words: list[str], first_on_path: str) -> None:
    """Set `sys.argv` and `sys.path` as `python` does, and bind torch to flambeau."""
    hook.install()
    sys.argv[:] = words
    # Entry 0 was made for the command itself; under `python -P` there is none.
    if not sys.flags.safe_path:
        sys.path[0] = first_on_path
    sys.excepthook = functools.partial(_show_without_our_frames, sys.excepthook)


def _execute(source: bytes | str, filename: str, main_module: ModuleType) -> int:
    """Run a program as `__main__`.

    The module stays in `sys.modules` afterwards: threads and exit handlers of the program run
    after its last line.
    """
    sys.modules["__main__"] = main_module
    code = compile(source, filename, "exec", dont_inherit=True)
    exec(code, vars(main_module))
    return 0


# The last frame of ours before the program's first.
ENTRIES: frozenset[CodeType] = frozenset({_execute.__code__})


def _show_without_our_frames(
    show: ExceptHook,
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType | None,
) -> None:
    """Print a program's traceback from its own first line on."""
    step = traceback
    while step is not None and step.tb_frame.f_code not in ENTRIES:
        step = step.tb_next
    if step is not None:
        traceback = step.tb_next
    show(kind, error.with_traceback(traceback), traceback)
