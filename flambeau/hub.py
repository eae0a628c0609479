"""`torch.hub`: files from addresses, kept in a folder; models that a folder's hubconf.py offers.

`github` as a source is missing; addresses may be of any kind that urllib opens, `file://` too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from flambeau._core.missing import NotImplementedInFlambeau, missing

__all__ = [
    "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url",
    "set_dir",
]  # fmt: skip

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
"""How a file's name tells the beginning of its SHA-256."""
READ = 128 * 1024
_folder: str | None = None


def _get_torch_home() -> str:
    """Where files are kept: $TORCH_HOME, or `torch` in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return str(Path(os.environ.get("TORCH_HOME", str(Path(cache) / "torch"))).expanduser())


def get_dir() -> str:
    """The folder of the hub: what `set_dir` said, or `hub` below the folder for files."""
    return str(Path(_get_torch_home()) / "hub") if _folder is None else _folder


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep files in another folder from now on."""
    global _folder  # noqa: PLW0603
    _folder = os.path.expanduser(d)  # noqa: PTH111  a relative path stays one


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Write what is at an address to a file, which appears when it is complete.

    hash_prefix: the beginning of its SHA-256. progress: say on stderr what is fetched.

    Raises:
        RuntimeError: the file has another SHA-256.
        URLError: nothing could be had from the address.
    """
    target = Path(dst).expanduser()
    digest = hashlib.sha256()
    request = Request(url, headers={"User-Agent": "torch.hub"})
    with urlopen(request) as source, tempfile.NamedTemporaryFile(
        dir=target.parent, prefix=target.name, delete=False
    ) as file:  # fmt: skip
        partial = Path(file.name)
        try:
            while chunk := source.read(READ):
                digest.update(chunk)
                file.write(chunk)
            file.close()
            _check(digest.hexdigest(), hash_prefix)
            shutil.move(partial, target)
        finally:
            partial.unlink(missing_ok=True)


def _check(found: str, wanted: str | None) -> None:
    if wanted is not None and found[: len(wanted)] != wanted:
        raise RuntimeError(f'invalid hash value (expected "{wanted}", got "{found}")')


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """What a checkpoint at an address holds; the file is fetched once.

    check_hash: the name tells the beginning of the file's SHA-256, which has to agree.
    """
    from flambeau.serialization import load as read

    folder = Path(model_dir) if model_dir is not None else Path(get_dir()) / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name or Path(urlparse(url).path).name
    file = folder / name
    if not file.exists():
        sys.stderr.write(f'Downloading: "{url}" to {file}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(file), found.group(1) if found else None, progress)
    return read(str(file), map_location=map_location, weights_only=weights_only)


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: bool | str | None = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """A model that a folder's `hubconf.py` offers, called with the further arguments.

    Raises:
        NotImplementedInFlambeau: the source is "github".
        RuntimeError: hubconf.py has no such function, or wants packages that are not there.
    """
    return _entry(_offers(repo_or_dir, source), model)(*args, **kwargs)


def list(github: str, source: str = "github", **options: Any) -> Any:
    """The names of models that a folder's `hubconf.py` offers."""
    offers = vars(_offers(github, source))
    return [name for name, value in offers.items() if callable(value) and name[0] != "_"]


def help(github: str, model: str, source: str = "github", **options: Any) -> str | None:
    """The docstring of a model that a folder's `hubconf.py` offers."""
    return _entry(_offers(github, source), model).__doc__


def _offers(folder: str, source: str) -> ModuleType:
    """The module hubconf.py of a folder."""
    if source.lower() not in {"github", "local"}:
        raise ValueError(f'Unknown source: "{source.lower()}". Allowed values: "github" | "local".')
    if source.lower() == "github":
        raise NotImplementedInFlambeau(
            "torch.hub with source='github' is not implemented in flambeau: download the "
            "repository, and use source='local'"
        )
    spec = importlib.util.spec_from_file_location("hubconf.py", Path(folder) / "hubconf.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def _entry(module: ModuleType, name: str) -> Any:
    wanted = [one for one in getattr(module, "dependencies", ())
              if importlib.util.find_spec(one) is None]  # fmt: skip
    if wanted:
        raise RuntimeError(f"Missing dependencies: {', '.join(wanted)}")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def __getattr__(name: str) -> Any:
    if name == "tqdm" and importlib.util.find_spec("tqdm"):  # programs take it from here
        return importlib.import_module("tqdm").tqdm
    return missing(__name__, name)
