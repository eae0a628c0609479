"""Runs one database entry on torch and on the implementation, and counts what agrees."""

import copy
import functools
import importlib
import re
import types
import warnings

import batches
import compare
import devices
import forward
import layouts
import orders
import symbols
import torch
from bridge import Bridge, Memo, Missing, draws_random_numbers, remember_constructor_arguments
from torch.testing._internal.common_modules import ModuleErrorEnum
from torch.testing._internal.common_optimizers import OptimizerErrorEnum

UNINITIALISED = re.compile(r"(new_)?empty(_like|_strided|_permuted)?$|resize_(as_)?$")
GRAD_TOLERANCE = 1e-6  # relative and absolute, for float64 and complex128 gradients
RANDOM_TRIALS = 24  # torch must agree with itself under so many seeds for values to be compared
SLIPS = {
    "rand_like": torch.rand_like
}  # the OpInfo of this name calls another function (randn_like)


class Call:
    """One call on one side: its converted arguments, and its output or exception."""

    def __init__(self, bridge, function, args, kwargs, seed=0):
        self.memo = Memo()
        self.with_leaves = bridge.compares_bits
        self.args = bridge.send(tuple(args), self.memo)
        self.kwargs = bridge.send(kwargs, self.memo)
        self.out = self.error = None
        bridge.seed(seed)
        try:
            self.out = function(*self.args, **self.kwargs)
        except Missing:
            raise
        except Exception as error:
            self.error = error

    def tensors(self):
        """Tensor arguments, in the same order on both sides."""
        return [twin for _, twin in self.memo.values()]

    def differentiable(self):
        known = [pair for pair in self.memo.values() if pair[0].requires_grad]
        if not self.with_leaves:
            return [twin for _, twin in known]
        return [self.memo.leaves[id(original)] for original, _ in known]


class Judge:
    """Compares a call on the implementation with the same call on torch."""

    def __init__(self, bench, info, dtype, canonical=None):
        self.reference, self.impl = bench.reference, bench.impl
        scale = bench.options.tol_scale
        self.tolerance = compare.tolerance_of(
            info, dtype, scale * (compare.CANONICAL_SLACK if canonical else 1)
        )
        self.grad_tolerance = GRAD_TOLERANCE * scale
        self.canonical = canonical or (lambda args, kwargs, out: out)

    def beside(self, reference, impl):
        """The same with other sides; what has a bit does not matter between them."""
        other = copy.copy(self)
        other.reference, other.impl = copy.copy(reference), copy.copy(impl)
        other.reference.compares_bits = other.impl.compares_bits = False
        return other

    def values(self, want, out):
        pair = [self.canonical(want.args, want.kwargs, o) for o in (want.out, out)]
        compare.check_values(*pair, self.tolerance)

    def differs(self, want, other):
        try:
            self.values(want, other.out)
        except AssertionError:
            return True
        return False

    def outputs(self, want, got, with_values):
        if (
            want.error
        ):  # such as an in-place result that does not fit: the implementation must refuse too
            compare.expect(got.error is not None, f"no exception, but torch raises: {want.error}")
            if unwritten(got.error, want.error):
                raise got.error
            return
        if got.error:
            raise got.error
        compare.check_structure(self.impl, want.out, got.out)
        if with_values:
            self.values(want, compare.to_torch(self.impl, want.out, got.out))
            arguments = want.tensors(), compare.to_torch(self.impl, want.tensors(), got.tensors())
            compare.check_values(*arguments, self.tolerance, "argument, after the call:")

    def gradients(self, want, got, with_values, process=lambda out: out, parameters=((), ())):
        """d(random projection of process(output)) / d(inputs and parameters), on both sides.

        `process` is the sample's output_process_fn_grad: it removes freedoms such as the phase of a
        singular vector. torch computes it on both sides; the implementation differentiates only the op.
        """
        grads = []
        for bridge, call, extra in zip((self.reference, self.impl), (want, got), parameters):
            cotangents = project(want.out, compare.to_torch(bridge, want.out, call.out), process)
            pairs = [
                p
                for p in zip(compare.flatten(call.out), cotangents, strict=True)
                if p[1] is not None
            ]
            inputs = call.differentiable() + list(extra)
            grads.append(bridge.grad([o for o, _ in pairs], inputs, [c for _, c in pairs]))
        inputs = want.differentiable() + list(parameters[0])
        for i, (x, w, g) in enumerate(zip(inputs, *grads, strict=True)):
            w = torch.zeros_like(x) if w is None else w.detach()
            g = torch.zeros_like(x) if g is None else self.impl.fetch(g)
            compare.expect(
                g.shape == w.shape,
                f"gradient {i}: shape {tuple(g.shape)} instead of {tuple(w.shape)}",
            )
            compare.expect(
                g.dtype == w.dtype, f"gradient {i}: dtype {g.dtype} instead of {w.dtype}"
            )
            if with_values:
                compare.check_close(w, g, self.grad_tolerance, self.grad_tolerance, f"gradient {i}")


def project(template, values, process):
    """For each leaf of values, the gradient of a fixed random projection of process(values)."""

    def differentiable(x):
        return isinstance(x, torch.Tensor) and x.requires_grad

    def leaf(w, v, where):
        return v.detach().requires_grad_(w.requires_grad) if isinstance(w, torch.Tensor) else v

    tree = compare.mirror(template, values, leaf)
    leaves = compare.flatten(tree)
    wanted = [x for x in leaves if differentiable(x)]
    outs = [x for x in compare.flatten(process(tree)) if differentiable(x)]
    source = torch.Generator().manual_seed(0)
    cotangents = [torch.randn(x.shape, dtype=x.dtype, generator=source) for x in outs]
    grads = iter(
        torch.autograd.grad(outs, wanted, cotangents, allow_unused=True)
        if outs
        else [None] * len(wanted)
    )
    return [next(grads) if differentiable(x) else None for x in leaves]


def unwritten(error, expected):
    """True for the exceptions of unwritten code, unless torch raises the same kind."""
    return isinstance(error, (NotImplementedError, AttributeError)) and not isinstance(
        expected, type(error)
    )


def thin(items, limit):
    """At most `limit` items, spread evenly; limit 0 keeps all."""
    items = list(items)
    return (
        items
        if not limit or len(items) <= limit
        else [items[i * len(items) // limit] for i in range(limit)]
    )


def describe(case):
    for inner in ("sample_input", "module_error_input", "optimizer_error_input"):
        case = getattr(case, inner, case)
    return case.summary()[:200] if hasattr(case, "summary") else case.desc


class Bench:
    def __init__(self, options):
        remember_constructor_arguments()
        self.options = options
        self.reference = Bridge(torch, options.bits)
        self.plain = Bridge(torch)
        self.impl = Bridge(importlib.import_module(options.impl), options.bits)

    def run(self, entry, category, dtype, announce):
        """The record of one unit of work: how many of the entry's cases pass, and why the first one fails."""
        torch.manual_seed(0)
        record = {"passed": 0, "total": 0, "missing": 0, "failure": None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cases, check = getattr(self, entry.kind)(entry, category, getattr(torch, dtype))
            cases = thin(cases, self.options.limit_samples)
            announce(len(cases))
            for i, case in enumerate(cases):
                counters = {"total": 1}
                try:
                    counters |= check(case) or {}
                    counters["passed"] = 1
                except compare.Void:
                    counters = {"left out": 1}
                except Exception as error:
                    counters |= {"missing": isinstance(error, Missing)} | getattr(
                        error, "counters", {}
                    )
                    text = (
                        f"{dtype} {i} {describe(case)}: {type(error).__name__}: {str(error)[:300]}"
                    )
                    record["failure"] = record["failure"] or text
                for name, n in counters.items():
                    record[name] = record.get(name, 0) + n
        return record

    # ---- errors, of every kind. attempt(bridge, case) returns the exception raised, or None.

    def error(self, attempt, case):
        try:
            expected = attempt(self.reference, case)
        except Exception:
            raise compare.Void("numpy cannot carry these inputs") from None
        if not isinstance(expected, case.error_type):
            raise compare.Void("torch itself does not raise it here")
        error = attempt(self.impl, case)
        good = isinstance(error, case.error_type) and not unwritten(error, expected)
        counters = {
            "any exception": error is not None,
            "right message": good and bool(re.search(case.error_regex, str(error))),
        }
        if not good:
            failure = AssertionError(f"{error!r} instead of {expected!r}")
            failure.counters = counters
            raise failure
        return counters

    # ---- operators

    def ops(self, entry, category, dtype):
        op = entry.info
        if category == "errors":
            return op.error_inputs("cpu"), functools.partial(
                self.error, functools.partial(self.op_error, op)
            )
        higher = category in orders.CATEGORIES or category in forward.CATEGORIES
        by_gradient = category == "grad" or higher
        if self.options.reference_inputs and not by_gradient:
            samples = op.reference_inputs("cpu", dtype)
        else:
            track = dtype in op.supported_backward_dtypes("cpu") and category != "inplace"
            samples = op.sample_inputs("cpu", dtype, requires_grad=track)
        if category.endswith("gradgradcheck"):
            samples = thin(orders.small(samples), orders.CHECK_SAMPLES)
        if category in ("method", "inplace"):
            samples = [s for s in samples if isinstance(s.input, torch.Tensor)]
        judge = Judge(
            self, op, dtype, compare.CANONICAL.get(op.name) if category != "inplace" else None
        )
        check = self.op_orders if higher else self.op_sample
        return samples, functools.partial(check, op, category, judge)

    def op_function(self, bridge, op, category):
        if category.startswith("inplace "):
            write = self.op_function(bridge, op, "inplace")
            return lambda x, *args, **kwargs: write(x.clone(), *args, **kwargs)
        variants = {
            "method": (op.method_variant, f"Tensor.{op.name}"),
            "inplace": (op.inplace_variant, f"Tensor.{op.name}_"),
        }
        return bridge.send_callable(*variants.get(category, (SLIPS.get(op.name, op.op), op.name)))

    def op_call(self, bridge, op, category, sample, seed=0):
        function = self.op_function(bridge, op, category)
        return Call(bridge, function, (sample.input, *sample.args), sample.kwargs, seed)

    def op_error(self, op, bridge, case):
        return self.op_call(bridge, op, "forward", case.sample_input).error

    def op_is_random(self, op, category, judge, sample, want):
        if UNINITIALISED.match(op.name):
            return True
        if want.error or not draws_random_numbers(op.op):
            return False
        return any(
            judge.differs(want, self.op_call(self.reference, op, category, sample, seed))
            for seed in range(1, RANDOM_TRIALS)
        )

    def op_sample(self, op, category, judge, sample):
        try:
            return self.op_compared(op, category, judge, sample)
        except Exception:
            if not self.options.bits or self.torch_agrees(op, category, judge, sample):
                raise
        return self.op_compared(op, category, judge.beside(self.plain, judge.impl), sample)

    def torch_agrees(self, op, category, judge, sample):
        """Whether torch gives the same for views with a bit as for the same values without."""
        try:
            self.op_compared(op, category, judge.beside(self.plain, self.reference), sample)
        except AssertionError:
            return False
        return True

    def op_compared(self, op, category, judge, sample):
        if category == batches.CATEGORY:
            return self.op_batches(op, judge, sample)
        if category in (layouts.CATEGORY, symbols.CATEGORY):
            bridges = self.reference, self.impl
            calls = [self.op_call(b, op, "forward", sample) for b in bridges]
            if calls[0].error:
                return {"torch raises": True}
            functions = [self.op_function(b, op, "forward") for b in bridges]
            check = layouts.check if category == layouts.CATEGORY else symbols.check
            return check(bridges, functions, calls)
        if category == devices.CATEGORY:
            bridges = self.reference, self.impl
            calls = [self.op_call(b, op, "forward", sample) for b in bridges]
            if calls[0].error:
                return {"torch raises": True}
            functions = [self.op_function(b, op, "forward") for b in bridges]
            return devices.check(bridges, functions, calls, op.name)
        want = self.op_call(judge.reference, op, category, sample)
        got = self.op_call(judge.impl, op, category, sample, seed=99)
        random = self.op_is_random(op, category, judge, sample, want)
        judge.outputs(want, got, with_values=not random and category != "grad")
        if category == "inplace" and not want.error:
            compare.expect(
                (got.out is got.args[0]) == (want.out is want.args[0]), "does not return its input"
            )
        if category == "grad" and not want.error:
            own = compare.CANONICAL_GRAD.get(op.name)
            process = (
                functools.partial(own, want.args, want.kwargs)
                if own
                else sample.output_process_fn_grad
            )
            judge.gradients(want, got, not random, process)
        wrong = judge.reference is not self.reference
        return {
            "values not compared": random,
            "torch raises": want.error is not None,
            "torch is wrong": wrong,
        }

    def op_batches(self, op, judge, sample):
        """`vmap`: batches.py."""
        bridges = self.reference, self.impl
        calls = [self.op_call(b, op, "forward", sample) for b in bridges]
        if calls[0].error:
            return {"torch raises": True}
        random = self.op_is_random(op, "forward", judge, sample, calls[0])
        functions = [self.op_function(b, op, "forward") for b in bridges]
        return batches.check(judge, bridges, functions, calls, with_values=not random)

    def op_orders(self, op, category, judge, sample):
        """Gradients of gradients: orders.py; tangents: forward.py."""
        bridges = self.reference, self.impl
        want, got = (
            self.op_call(b, op, category, sample, seed) for b, seed in zip(bridges, (0, 99))
        )
        random = self.op_is_random(op, category, judge, sample, want)
        judge.outputs(want, got, with_values=False)
        if want.error:
            return {"torch raises": True}
        own = compare.CANONICAL_GRAD.get(op.name)
        programs = [
            orders.Program(b, self.op_function(b, op, category), call, sample, own)
            for b, call in zip(bridges, (want, got))
        ]
        if category.endswith("gradgradcheck"):
            return orders.check_second_order(*programs)
        if category in forward.CATEGORIES:
            return forward.check(judge, programs, with_values=not random)
        sides = [orders.Side(program) for program in programs]
        if draws_random_numbers(op.op):
            other = self.op_call(self.reference, op, category, sample)
            function = self.op_function(self.reference, op, category)
            sides.append(
                orders.Side(orders.Program(self.reference, function, other, sample, own, seed=1))
            )
        return orders.Climb(judge, *sides).run(with_values=not random)

    # ---- modules

    def modules(self, entry, category, dtype):
        info = entry.info
        make = info.module_error_inputs_func if category == "errors" else info.module_inputs_func
        cases = []
        for training in (True, False) if info.train_and_eval_differ else (True,):
            for case in make(
                info,
                device="cpu",
                dtype=dtype,
                requires_grad=category in ("grad", devices.CATEGORY),
                training=training,
            ):
                made = getattr(case, "module_error_input", case)
                about = {
                    name: getattr(case, name, None)
                    for name in ("error_on", "error_type", "error_regex")
                }
                desc = f"{'train' if training else 'eval'} {made.desc}"
                cases.append(
                    types.SimpleNamespace(training=training, made=made, desc=desc, **about)
                )
        if category == "errors":
            return cases, functools.partial(self.error, functools.partial(self.module_error, entry))
        return cases, functools.partial(
            self.module_sample, entry, category, Judge(self, info, dtype), dtype
        )

    @staticmethod
    def module_call(bridge, module, case, seed=0):
        return Call(
            bridge, module, case.made.forward_input.args, case.made.forward_input.kwargs, seed
        )

    def module_new(self, bridge, entry, case):
        args, kwargs = (
            bridge.send(x)
            for x in (case.made.constructor_input.args, case.made.constructor_input.kwargs)
        )
        bridge.seed(0)
        return bridge.get(entry.name)(*args, **kwargs)

    def module_ready(self, bridge, entry, case, dtype, state=None):
        module = self.module_new(bridge, entry, case).to(bridge.send(dtype))
        module.train(case.training)
        if entry.info.is_lazy:  # the first call gives it its parameters
            self.module_call(bridge, module, case)
        if state is not None:
            compare.check_structure(bridge, state, dict(module.state_dict()))
            module.load_state_dict(bridge.send(state))
        return module

    def module_sample(self, entry, category, judge, dtype, case):
        state = self.module_ready(self.reference, entry, case, dtype).state_dict()
        state = {name: value.clone() for name, value in state.items()}
        if category == devices.CATEGORY:
            return self.module_on_devices(entry, judge, dtype, case, state)

        def run(bridge, seed=0):
            module = self.module_ready(bridge, entry, case, dtype, state)
            return module, self.module_call(bridge, module, case, seed)

        (model, want), (twin, got) = run(self.reference), run(self.impl, seed=99)
        random = not want.error and any(
            judge.differs(want, run(self.reference, seed)[1]) for seed in (1, 2)
        )
        judge.outputs(want, got, with_values=not random and category != "grad")
        if category == "grad":
            named = [dict(m.named_parameters()) for m in (model, twin)]
            compare.expect(
                list(named[0]) == list(named[1]),
                f"parameters {list(named[1])} instead of {list(named[0])}",
            )
            judge.gradients(want, got, not random, parameters=[list(n.values()) for n in named])
        else:  # running statistics and the like
            after = [dict(m.state_dict()) for m in (model, twin)]
            compare.check_structure(self.impl, *after)
            if not random:
                compare.check_values(after[0], compare.to_torch(self.impl, *after), judge.tolerance)
        return {"values not compared": random, "torch raises": want.error is not None}

    def module_on_devices(self, entry, judge, dtype, case, state):
        """devices.py; values are not compared where torch's depend on the seed."""
        calls = []
        for seed in range(3):
            module = self.module_ready(self.reference, entry, case, dtype, state)
            calls.append(self.module_call(self.reference, module, case, seed))
        if calls[0].error:
            return {"torch raises": True}
        random = any(judge.differs(calls[0], other) for other in calls[1:])
        make = functools.partial(self.module_ready, self.impl, entry, case, dtype, state)
        own = self.module_call(self.impl, make(), case)
        found = devices.check_module(self.impl, make, own, random)
        return {**found, "values not compared": random}

    def module_error(self, entry, bridge, case):
        try:
            module = self.module_new(bridge, entry, case)
        except Missing:
            raise
        except Exception as error:
            return error if case.error_on == ModuleErrorEnum.CONSTRUCTION_ERROR else None
        return (
            self.module_call(bridge, module, case).error
            if case.error_on == ModuleErrorEnum.FORWARD_ERROR
            else None
        )

    # ---- optimizers

    def optims(self, entry, category, dtype):
        info = entry.info
        if category == "errors":
            return info.optim_error_inputs_func("cpu", dtype), functools.partial(
                self.error, functools.partial(self.optim_error, entry)
            )
        return info.optim_inputs_func("cpu", dtype), functools.partial(
            self.optim_sample, entry, Judge(self, info, dtype), dtype
        )

    def optim_sample(self, entry, judge, dtype, case):
        (want, want_keys), (got, got_keys) = (
            self.optimize(b, entry, case, dtype) for b in (self.reference, self.impl)
        )
        compare.check_structure(self.impl, want, got)
        compare.check_values(want, compare.to_torch(self.impl, want, got), judge.tolerance)
        compare.expect(want_keys == got_keys, f"state_dict keys {got_keys} instead of {want_keys}")

    def optimize(self, bridge, entry, case, dtype):
        """Six steps on a loss that changes at every step; after three, through a saved state_dict."""
        source = torch.Generator().manual_seed(0)

        def draw():
            return [
                bridge.send(torch.randn(shape, dtype=dtype, generator=source))
                for shape in ((4, 3), (3, 2))
            ]

        def new():
            return bridge.get(f"optim.{entry.name}")(params, **kwargs)

        def closure():
            optimizer.zero_grad()
            first, second = [
                (p * p * c * c + p * s).sum() for p, c, s in zip(params, curves, slopes)
            ]
            loss = first + second
            loss.backward()
            return loss

        params, kwargs, trace = (
            [bridge.get("nn.Parameter")(p) for p in draw()],
            bridge.send(case.kwargs),
            [],
        )
        optimizer = new()
        for step in range(6):
            curves, slopes = draw(), draw()
            if entry.info.step_requires_closure:
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
            trace += [p.detach().clone() for p in params]
            if step == 2:
                saved, optimizer = optimizer.state_dict(), new()
                optimizer.load_state_dict(saved)
        return trace, [
            sorted(map(str, d)) for d in (saved, saved["param_groups"][0], *saved["state"].values())
        ]

    @staticmethod
    def optim_error(entry, bridge, case):
        bad = case.optimizer_error_input
        new, params, kwargs = (
            bridge.get(f"optim.{entry.name}"),
            bridge.send(bad.params),
            bridge.send(bad.kwargs),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error" if issubclass(case.error_type, Warning) else "ignore")
            try:
                optimizer = new(params, **kwargs)
                if case.error_on == OptimizerErrorEnum.STEP_ERROR:
                    optimizer.step()
            except Exception as error:
                return error
