"""Calls of every public function, method and class of PyTorch, drawn from its own signatures.

    python -m conformance.calls.generated --minutes 10 --workers 2

- `signatures.py`, `sources.py`: what may be called and with what, read from the type stubs and the
  documentation of the installed PyTorch while this runs;
- `values.py`: arguments, right and wrong; `drawing.py`: programs of one call;
- `words.py`: what calls use beside the library, and how they are looked at; `allowed.py`: what is
  meant to differ;
- `judging.py`, `__main__.py`: many programs. They are run, compared and written down as those of
  `conformance/autograd/generated/`; `found/`: calls that differed once.
"""
