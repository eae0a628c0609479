"""Archives behind http, from a server that gives ranges and from one that does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from flambeau.utils.data import DataLoader, TarDataset
from flambeau.utils.data.archives import sources
from flambeau.utils.data.archives.sources import SourceError
from tests.utils.data.archives.making import numbered, tar_of


class Handler(BaseHTTPRequestHandler):
    """Gives files of `server.folder`; how well, `server.mode` says."""

    server: Any

    def log_message(self, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        file = self.server.folder / self.path.lstrip("/")
        if not file.exists():
            self.send_error(404)
            return
        data = file.read_bytes()
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        if self.server.mode == "whole files":
            self.send_response(200)
        else:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            total = len(data)
            data = data[int(first) : int(last) + 1]
            if self.server.mode == "short" and len(data) > 1:
                data = data[:-1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{total}")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.folder, server.mode, server.asked = tmp_path, "ranges", []
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.mark.parametrize("workers", [0, 2])
def test_each_sample_once(server: Any, workers: int):
    numbered(server.folder, [7, 5])
    dataset = TarDataset(f"{server.url}/{{0..1}}.tar", ("cls",), shuffle=3)
    found = [k for (batch,) in DataLoader(dataset, 2, num_workers=workers) for k in batch.tolist()]
    assert sorted(found) == list(range(12))
    assert not list(server.folder.glob("*.npz"))


def test_data_come_in_large_blocks(server: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "BLOCK", 4096)
    monkeypatch.setattr(sources, "BLOCKS", 2)
    tar_of(server.folder / "t.tar", [(f"{k}.x", bytes([k]) * 3000) for k in range(20)])
    dataset = TarDataset(f"{server.url}/t.tar")
    server.asked.clear()
    assert [s["x"] for s in dataset] == [bytes([k]) * 3000 for k in range(20)]
    assert len(server.asked) == len(set(server.asked)) == 1 + (20 * 3584 - 72 + 4095) // 4096


def test_a_server_without_ranges_is_named(server: Any):
    numbered(server.folder, [2])
    server.mode = "whole files"
    with pytest.raises(SourceError, match=r"/0\.tar: the server does not give ranges"):
        TarDataset(f"{server.url}/0.tar")


def test_a_server_that_gives_too_little(server: Any):
    numbered(server.folder, [2])
    server.mode = "short"
    with pytest.raises(SourceError, match=r"/0\.tar: \d+ bytes instead of \d+ at offset 0"):
        TarDataset(f"{server.url}/0.tar")


def test_a_missing_file_and_a_missing_server(server: Any):
    with pytest.raises(SourceError, match=r"/none\.tar: .*404"):
        TarDataset(f"{server.url}/none.tar")
    with pytest.raises(SourceError, match=r"http://127\.0\.0\.1:9/t\.tar: "):
        TarDataset("http://127.0.0.1:9/t.tar")
