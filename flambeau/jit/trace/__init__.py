"""`torch.jit.trace`: a program out of what a function or module does to example inputs.

interception   every public operator hands its calls to the trace
tracer         which makes nodes of them
recipes        which operator a public function is; arguments: which overload
indexing       `x[i, 1:]`; sizes: `x.shape`, followed through arithmetic
modules        calls of modules; scopes: whose parameter a tensor is
methods        a method for each module that ran
checking       the trace again, and compared
"""

from __future__ import annotations

from flambeau.jit.trace.api import trace, trace_module
from flambeau.jit.trace.modules import TopLevelTracedModule, TracedModule

__all__ = ["TopLevelTracedModule", "TracedModule", "trace", "trace_module"]
