"""Runs hostile archives under an audit hook of Python, and prints what happened as JSON.

A process of its own, since audit hooks stay for ever. Everything runs twice; the first time
imports what it takes, the second time is watched.
"""

import contextlib
import io
import json
import sys
import warnings

from tests.jit.archive import handmade, test_hostile
from tests.jit.archive.handmade import Raw, code, made, named

WORD = "qzx"
"""Stands in all names and texts of one archive, and nowhere else."""
NAMED = f"""
class {WORD}E(Enum):
  {WORD}a = "{WORD}"
class {WORD}O:
  {WORD}n : int
  def {WORD}get(self: __torch__.{WORD}O, {WORD}k: int=3) -> int:
    return torch.add(self.{WORD}n, {WORD}k)
def {WORD}f({WORD}x: int) -> str:
  return torch.format("{WORD} {{}}", {WORD}x)
class M(Module):
  __parameters__ = []
  __buffers__ = ["{WORD}b"]
  {WORD}b : Tensor
  {WORD}o : __torch__.{WORD}O
  __annotations__["{WORD}\\"]; 'x"] = Dict[str, int]
  def forward(self: __torch__.M, {WORD}: Tensor) -> Dict[str, str]:
    {WORD}y = torch.add({WORD}, self.{WORD}b)
    {WORD}l = annotate(List[str], [])
    for {WORD}i in range(3):
      _0 = torch.append({WORD}l, __torch__.{WORD}f((self.{WORD}o).{WORD}get({WORD}i)))
    if torch.gt(torch.len({WORD}l), 9):
      ops.prim.RaiseException("{WORD}", "builtins.{WORD}")
    else:
      pass
    print("{WORD}", {WORD}y, __torch__.{WORD}E.{WORD}a)
    return {{"{WORD}": ({WORD}l)[0], "s": "{WORD}"}}
"""


def named_archive():
    """An archive that is all of one word."""
    attributes = {
        f"{WORD}b": handmade.tensor(kind="torch.FloatStorage"),
        f"{WORD}o": made(f"__torch__.{WORD}O", {f"{WORD}n": 4}),
        f"{WORD}\"]; 'x": Raw(
            bytes(named("torch.jit._pickle.restore_type_tag"))
            + code(({WORD: 1}, "Dict[str, int]")) + b"R"),
    }  # fmt: skip
    value = made("__torch__.M", attributes)
    return handmade.archive(NAMED, value, storages={"0": bytes(24)})


def attacks():
    """All archives, and what they are called with."""
    for body in test_hostile.BODIES.values():
        yield handmade.archive(handmade.module(body)), ()
    for text in test_hostile.CLASSES.values():
        yield handmade.archive(text), ()
    for note, value in test_hostile.VALUES.values():
        text = test_hostile.classes(f"  a : {note}\n")
        yield handmade.archive(text, made("__torch__.M", {"a": value})), ()


def run_all():
    """Load and run everything."""
    import flambeau

    with contextlib.redirect_stdout(io.StringIO()):
        for content, inputs in attacks():
            with contextlib.suppress(*test_hostile.REFUSALS):
                handmade.load(content, limits=test_hostile.LIMITS)(*inputs)
        for limits in (None, test_hostile.LIMITS):
            module = handmade.load(named_archive(), limits=limits)
            assert module(flambeau.ones(2, 3)) == {WORD: f"{WORD} 4", "s": WORD}


def main():
    warnings.simplefilter("ignore")
    run_all()
    events, watching = [], []

    def hook(event, arguments):
        if not watching:
            return
        watching.clear()
        place, text = "", ""
        if event == "exec":
            place = arguments[0].co_filename
        elif event == "compile":
            place, text = str(arguments[1]), str(arguments[0])
        elif arguments:
            place = str(arguments[0])
        events.append((event, place, WORD in text))
        watching.append(True)

    sys.addaudithook(hook)
    watching.append(True)
    run_all()
    watching.clear()
    json.dump(events, sys.stdout)


if __name__ == "__main__":
    main()
