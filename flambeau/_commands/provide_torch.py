"""`flambeau provide-torch`: a distribution `torch` that requirements accept, of flambeau."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from pathlib import Path

from flambeau._commands.common import Refused, make_parser, run
from flambeau._core.torch_shim import DIST_INFO, SCRIPT, files, record
from flambeau._version import TORCH_VERSION

DESCRIPTION = f"""\
Put a distribution `torch {TORCH_VERSION}` into this environment. pip, uv and other installers
take it for PyTorch, and `import torch` gives flambeau, without `flambeau run`.
"""
EPILOG = """\
It refuses where PyTorch itself is installed. `pip uninstall torch` takes it away as well as
--undo does. docs/libraries.md says more, for pip, uv, poetry, conda and containers.
"""


def main(words: list[str]) -> int:
    """Carry out the command; the exit code is 1 if it is refused."""
    parser = make_parser("provide-torch", DESCRIPTION, EPILOG)
    parser.add_argument("--undo", action="store_true", help="take it away again")
    return run(parser, words, _act)


def _act(options: argparse.Namespace) -> int:
    site = Path(sysconfig.get_path("purelib"))
    scripts = Path(sysconfig.get_path("scripts"))
    try:
        return _undo(site) if options.undo else _provide(site, scripts)
    except OSError as error:
        raise Refused(f"{error.filename}: {error.strerror}") from error


def _provide(site: Path, scripts: Path) -> int:
    present = list(_installed("torch", sys.path))
    _refuse_another(present, site)
    for ours in present:
        _remove(ours)
    texts = files(requires_flambeau=any(_installed("flambeau", sys.path)))
    if os.name == "posix":
        script = scripts / "torchrun"
        texts[os.path.relpath(script, site)] = SCRIPT.format(python=sys.executable)
    texts[f"{DIST_INFO}/RECORD"] = record(texts)
    for path, text in texts.items():
        file = site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
    if os.name == "posix":
        script.chmod(0o755)
    sys.stdout.write(f"torch {TORCH_VERSION} is now in {site}: `import torch` gives flambeau\n")
    return 0


def _undo(site: Path) -> int:
    present = list(_installed("torch", [str(site)]))
    if not present:
        raise Refused(f"there is no torch in {site}")
    _refuse_another(present, site)
    for ours in present:
        _remove(ours)
    sys.stdout.write(f"torch {TORCH_VERSION} is gone from {site}\n")
    return 0


def _installed(name: str, path: list[str]) -> Iterator[Distribution]:
    """Distributions in folders of `path`; the hook, which answers for torch too, is not asked."""
    yield from MetadataPathFinder.find_distributions(
        DistributionFinder.Context(name=name, path=path)
    )


def _refuse_another(present: list[Distribution], site: Path) -> None:
    """Raise for a torch that is not ours, or that nobody says where it comes from."""
    for distribution in present:
        if not distribution.version.endswith("+flambeau"):
            raise Refused(
                f"PyTorch {distribution.version} is installed in {distribution.locate_file('')}: "
                f"`{shlex.quote(sys.executable)} -m pip uninstall torch` first"
            )
    if not present and (site / "torch").exists():
        raise Refused(f"{site / 'torch'} is there, and belongs to no distribution")


def _remove(distribution: Distribution) -> None:
    """Remove every file that RECORD lists, what Python compiled of them, and emptied folders."""
    listed = [Path(str(file.locate())) for file in distribution.files or ()]
    for file in listed:
        file.unlink(missing_ok=True)
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
            compiled.unlink()
    for folder in sorted({file.parent for file in listed}, key=lambda path: -len(path.parts)):
        _remove_if_empty(folder / "__pycache__")
        _remove_if_empty(folder)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
