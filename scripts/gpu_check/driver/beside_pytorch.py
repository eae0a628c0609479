"""Programs that print, run in flambeau and in PyTorch."""

from __future__ import annotations

import contextlib
import gc
import io
import re
import warnings
from typing import Any

import flambeau

SNIPPETS = {
    "rounding": """
b = torch.cuda.memory_allocated()
for n in (0, 1, 128, 129, 1000, 262144, 262145, 2621440, 2621441):
    x = torch.empty(n, device='cuda')
    print(n, torch.cuda.memory_allocated() - b, x.untyped_storage().nbytes(), x.data_ptr() % 512)
    del x
""",
    "segments": """
torch.cuda.empty_cache(); r = torch.cuda.memory_reserved()
for mb in (0.5, 1, 1.5, 9, 10, 11, 30, 100):
    x = torch.empty(int(mb * 2**18), device='cuda')
    print(mb, (torch.cuda.memory_reserved() - r) / 2**20)
    del x; torch.cuda.empty_cache()
""",
    "reuse": """
torch.cuda.empty_cache(); a = torch.empty(1000, device='cuda'); p = a.data_ptr(); del a
b = torch.empty(900, device='cuda'); print(b.data_ptr() == p)
c = torch.empty(1000, device='cuda'); print(c.data_ptr() - p)
""",
    "split": """
torch.cuda.empty_cache(); r = torch.cuda.memory_reserved()
xs = [torch.empty(2**16, device='cuda') for _ in range(10)]
print(torch.cuda.memory_reserved() - r, [x.data_ptr() - xs[0].data_ptr() for x in xs])
def counts():
    s = torch.cuda.memory_stats()
    print({k: v for k, v in s.items() if 'inactive_split' in k and 'current' in k})
counts(); del xs[1::2]; counts()
""",
    "peak": """
torch.cuda.reset_peak_memory_stats(); b = torch.cuda.memory_allocated()
x = torch.empty(2**20, device='cuda'); y = torch.empty_like(x)
z = [torch.empty_like(x) for _ in 'ab']
print((torch.cuda.max_memory_allocated() - b) / 2**20); del y, z
print((torch.cuda.memory_allocated() - b) / 2**20); torch.cuda.reset_peak_memory_stats()
print((torch.cuda.max_memory_allocated() - b) / 2**20)
""",
    "keys": "print(sorted(torch.cuda.memory_stats()))",
    "nested": "print(sorted(torch.cuda.memory_stats_as_nested_dict()))",
    "snapshot": """
x = torch.empty(1000, device='cuda'); s = torch.cuda.memory_snapshot()
print(sorted(set(s[0]) - {'stream'}), sorted(s[0]['blocks'][0]))
""",
    "fraction": """
try: torch.cuda.set_per_process_memory_fraction(1.5)
except ValueError as e: print(e)
print(torch.cuda.get_per_process_memory_fraction())
""",
    "streams": """
s = torch.cuda.Stream(); d = torch.cuda.default_stream(); c = torch.cuda.current_stream()
print(c == d, s == d, d.cuda_stream, s.query(), s.device, s.priority, hash(d) == hash(c))
print(torch.cuda.Stream.priority_range())
print([torch.cuda.Stream(priority=p).priority for p in (-1, -9)])
print(re.sub('0x[0-9a-f]+', 'X', repr(s)), s.device_index, s.device_type)
""",
    "events": """
e = torch.cuda.Event(enable_timing=True); f = torch.cuda.Event(enable_timing=True); print(e.query())
e.record(); f.record(); f.synchronize(); print(e.elapsed_time(f) >= 0, e.query(), f.query())
print(torch.cuda.Event())
for a, b in ((torch.cuda.Event(), e), (torch.cuda.Event(enable_timing=True), e)):
    try: a.elapsed_time(b)
    except Exception as x: print(type(x).__name__, x)
""",
    "stream pools": """
torch.cuda.empty_cache(); x = torch.empty(1000, device='cuda'); p = x.data_ptr(); del x
with torch.cuda.stream(torch.cuda.Stream()): y = torch.empty(1000, device='cuda')
print(y.data_ptr() == p)
z = torch.empty(1000, device='cuda'); print(z.data_ptr() == p)
""",
    "properties": """
p = torch.cuda.get_device_properties(0); print(sorted(a for a in dir(p) if a[0] != '_'))
print(repr(p)); print([getattr(p, a) for a in dir(p) if a[0] != '_' and a != 'uuid'])
""",
    "graph": """
g = torch.cuda.CUDAGraph(); x = torch.zeros(4, device='cuda'); s = torch.cuda.Stream()
with torch.cuda.stream(s): y = x * 2 + 1
torch.cuda.current_stream().wait_stream(s)
with torch.cuda.graph(g): y = x * 2 + 1
print(torch.cuda.is_current_stream_capturing()); x.fill_(3); g.replay()
print(y.tolist(), type(g.pool()))
try: torch.cuda.CUDAGraph().replay()
except RuntimeError as e: print(str(e).splitlines()[0])
""",
    "info": "f, t = torch.cuda.mem_get_info(); print(f < t, t, type(f))",
    "pinned": """
x = torch.ones(3).pin_memory(); print(x.is_pinned(), torch.ones(3).is_pinned(), x[1:].is_pinned())
y = x.to('cuda', non_blocking=True); torch.cuda.synchronize(); print(y.tolist())
print(torch.empty(2, pin_memory=True).is_pinned(), x.clone().is_pinned())
""",
}  # fmt: skip  # fmt: skip


def answer(library: Any, code: str) -> str:
    """What a snippet prints."""
    gc.collect()
    library.cuda.empty_cache()
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(code, "<snippet>", "exec"), {"torch": library, "re": re})
        except Exception as error:
            print(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return out.getvalue()


def torch_with_cuda() -> Any:
    """PyTorch, where it is installed and has a GPU."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def like_pytorch() -> dict[str, Any]:
    torch = torch_with_cuda()
    ours = {name: answer(flambeau, code) for name, code in SNIPPETS.items()}
    if torch is None:
        failed = [f"{name}: {text}" for name, text in ours.items() if "Error: " in text]
        assert not failed, failed
        return {"compared": 0}
    theirs = {name: answer(torch, code) for name, code in SNIPPETS.items()}
    different = {name: {"PyTorch": theirs[name], "flambeau": ours[name]}
                 for name in SNIPPETS if theirs[name] != ours[name]}  # fmt: skip
    return {"ok": not different, "compared": len(SNIPPETS), "different": different}
