"""Measure a PyTorch-compatible library against PyTorch's own operator test database.

    python opinfo.py --impl MODULE [--ops REGEX] [--dtypes float32,int64] [--grad] [--modules] [--optims]

README.md beside this file says what is compared and what the numbers mean.
"""

import argparse
import collections
import functools
import json
import os
import re
import sys
import time

import batches
import devices
import forward
import layouts
import orders
import pool
import symbols
import torch
from bench import Bench
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

# What makes no sense outside torch: pattern on the whole name -> printed reason.
SKIP = {
    r"_(?!_).*": "underscore-private internal of torch",
    r"torch\..*": "private entry point (torch.ops.aten.*, torch._scaled_mm*)",
    r"slice|native_dropout_backward|max_pool2d_with_indices_backward": "reachable only through torch.ops.aten",
    r"jiterator_.*": "CUDA-only runtime compiler",
    r"sparse\..*|to_sparse|SparseAdam": "sparse layout",
}
# Where an entry supports none of the dtypes asked for, it is run in the first of these that it supports.
FALLBACK = "float32 float64 int64 bool complex64 int32 uint8 float16 bfloat16 complex128".split()
CATEGORIES = {
    "ops": (
        "forward",
        "method",
        "inplace",
        "grad",
        *orders.CATEGORIES,
        *forward.CATEGORIES,
        batches.CATEGORY,
        layouts.CATEGORY,
        symbols.CATEGORY,
        devices.CATEGORY,
        "errors",
    ),
    "modules": ("forward", "grad", devices.CATEGORY, "errors"),
    "optims": ("steps", "errors"),
}
COLUMNS = (
    "what",
    "all",
    "skipped",
    "applies",
    "pass",
    "partial",
    "fail",
    "missing",
    "% of all",
    "% of applies",
    "samples",
)
NOTES = (
    "any exception",
    "right message",
    "left out",
    "values not compared",
    "torch raises",
    "torch is wrong",
    "beyond torch",
    "not finite",
    "varies",
    "waits",
)  # counts of samples

Entry = collections.namedtuple("Entry", "kind name info")


def entries(options):
    databases = {
        "ops": [] if options.no_ops else op_db,
        "modules": module_db if options.modules else [],
        "optims": optim_db if options.optims else [],
    }
    found = [
        Entry(kind, f"{info.name} {getattr(info, 'variant_test_name', '')}".strip(), info)
        for kind, database in databases.items()
        for info in database
    ]
    return [e for e in found if re.search(options.ops, e.name)]


def plan(entry, options):
    """category -> the dtypes to run it in, or the reason to skip it."""
    info = entry.info
    for pattern, reason in SKIP.items():
        if re.fullmatch(pattern, entry.name.split()[0]):
            return dict.fromkeys(CATEGORIES[entry.kind], reason)

    def among(supported, wanted, fallback=()):
        supported = {str(dtype).removeprefix("torch.") for dtype in supported}
        return [d for d in wanted if d in supported] or [d for d in fallback if d in supported][:1]

    if entry.kind == "ops":
        fallback = () if options.bits else FALLBACK  # only some types can have a bit
        dtypes = among(info.supported_dtypes("cpu"), options.dtypes, fallback) or "no CPU dtypes"
        smooth, errors = info.supported_backward_dtypes("cpu"), info.error_inputs_func
    else:
        dtypes = among(
            getattr(info, "dtypes", (torch.float32, torch.float64)), options.dtypes, FALLBACK
        )
        smooth = getattr(info, "dtypes", ())
        errors = getattr(info, "module_error_inputs_func", None) or getattr(
            info, "optim_error_inputs_func", None
        )
    choice = {
        "forward": dtypes,
        "steps": dtypes,
        "method": dtypes
        if getattr(info, "method_variant", None)
        else "torch has no method variant",
        "inplace": dtypes
        if getattr(info, "inplace_variant", None)
        else "torch has no in-place variant",
        "grad": (among(smooth, options.grad_dtypes) or "torch has no such gradient")
        if options.grad
        else "--grad not given",
        "errors": ["float32"] if errors else "no error inputs in the database",
    }
    choice[devices.CATEGORY] = dtypes if options.devices else "--devices not given"
    if entry.kind == "ops":
        choice |= plan_orders(info, options, among(smooth, options.grad_dtypes))
        choice |= plan_tangents(info, options, among(smooth, options.grad_dtypes))
        choice[layouts.CATEGORY] = dtypes if options.layouts else "--layouts not given"
        choice[symbols.CATEGORY] = dtypes if options.symbols else "--symbols not given"
        choice[batches.CATEGORY] = dtypes if options.batches else "--batches not given"
    if options.only:
        others = choice.keys() - set(options.only)
        choice |= dict.fromkeys(others, "not among --only")
    return {category: choice[category] for category in CATEGORIES[entry.kind]}


def plan_orders(info, options, dtypes):
    """The same for gradients of gradients; dtypes: those in which torch has a gradient."""
    wanted = {"gradgrad": options.gradgrad, "inplace grad": options.gradgrad}
    choice = {}
    for category in orders.CATEGORIES:
        flag = "gradgrad" if category in wanted else "gradgradcheck"
        choice[category] = dtypes or "torch has no such gradient"
        if not wanted.get(category, options.gradgradcheck):
            choice[category] = f"--{flag} not given"
        elif category.startswith("inplace") and not (
            info.inplace_variant and info.supports_inplace_autograd
        ):
            choice[category] = "torch has no in-place variant, or no gradient of it"
        elif category != "inplace grad" and not info.supports_gradgrad:
            choice[category] = "torch has no second gradient"
    return choice


def plan_tangents(info, options, dtypes):
    """The same for derivatives in forward mode."""
    plain = inplace = dtypes or "torch has no such gradient"
    if not options.tangents:
        plain = inplace = "--tangents not given"
    elif not info.supports_forward_ad:
        plain = inplace = "torch has no forward mode"
    elif not (info.inplace_variant and info.supports_inplace_autograd):
        inplace = "torch has no in-place variant, or no gradient of it"
    return dict(zip(forward.CATEGORIES, (plain, inplace), strict=True))


def start(todo, options):
    """In a worker: the function that runs one task, (position in todo, category, dtype)."""
    bench = Bench(options)
    return lambda position, category, dtype, announce: bench.run(
        todo[position], category, dtype, announce
    )


def start_anew(options):
    """The same in a worker that has not been given the list: it cannot be sent."""
    return start(entries(options), options)


# ---------------------------------------------------------------- the report


def status(record):
    if not record["total"]:
        return "skipped"
    if record.get("missing", 0) == record["total"]:
        return "missing"
    return (
        "pass" if record["passed"] == record["total"] else "partial" if record["passed"] else "fail"
    )


def combine(records):
    """The records of one category in several dtypes, summed. records: dtype -> record."""
    total = collections.Counter()
    for record in records.values():
        total.update({name: n for name, n in record.items() if name != "failure"})
    failure = next((r["failure"] for r in records.values() if r["failure"]), None)
    merged = {"status": status(total), **total, "failure": failure}
    if merged["status"] == "skipped":
        merged["reason"] = "the database has no sample for it"
    return merged | {"dtypes": {dtype: [r["passed"], r["total"]] for dtype, r in records.items()}}


def everything(categories):
    """One record for an entry: passed only if every category that applies passed."""
    records = [r for r in categories.values() if r["status"] != "skipped"]
    seen = {r["status"] for r in records}
    total = collections.Counter()
    for record in records:
        total.update({name: record[name] for name in ("passed", "total")})
    return {**total, "status": seen.pop() if len(seen) == 1 else "partial" if seen else "skipped"}


def summarise(results):
    """One row per kind and category. No percentage ever drops a missing op from its denominator."""
    table = []
    for kind, category in [
        (k, c) for k, categories in CATEGORIES.items() for c in ("everything", *categories)
    ]:
        records = [r["categories"] for r in results if r["kind"] == kind]
        records = [everything(r) if category == "everything" else r[category] for r in records]
        if not sum(r.get("total", 0) for r in records):
            continue
        count = collections.Counter(r["status"] for r in records)
        applies = len(records) - count["skipped"]
        row = {
            "what": f"{kind} {category}",
            "all": len(records),
            "skipped": count["skipped"],
            "applies": applies,
        }
        row |= {name: count[name] for name in ("pass", "partial", "fail", "missing")}
        row["% of all"] = f"{100 * count['pass'] / len(records):.1f}"
        row["% of applies"] = f"{100 * count['pass'] / applies:.1f}"
        row["samples"] = "/".join(
            str(sum(r.get(name, 0) for r in records)) for name in ("passed", "total")
        )
        row["notes"] = {name: n for name in NOTES if (n := sum(r.get(name, 0) for r in records))}
        runs = [
            (d, n == of)
            for r in records
            for d, (n, of) in r.get("dtypes", {}).items()
            if of and category != "errors"
        ]
        row["notes"] |= {
            f"pass in {dtype}": f"{sum(d == dtype and good for d, good in runs)}/{n}"
            for dtype, n in collections.Counter(d for d, _ in runs).items()
        }
        table.append(row)
    return table


def show(results, table, verbose):
    width = {c: max(len(c), *(len(str(row[c])) for row in table), 0) + 2 for c in COLUMNS}
    for row in [dict(zip(COLUMNS, COLUMNS)), *table]:
        print(
            "".join(
                str(row[c]).ljust(width[c]) if c == "what" else str(row[c]).rjust(width[c])
                for c in COLUMNS
            )
        )
    for row in table:
        if row["notes"]:
            print(
                f"{row['what']}: " + ", ".join(f"{name}: {n}" for name, n in row["notes"].items())
            )
    reasons = {}
    for result in results:
        record = result["categories"]["steps" if result["kind"] == "optims" else "forward"]
        if record["status"] == "skipped":
            reasons.setdefault(record["reason"], []).append(result["name"])
    for reason, names in reasons.items():
        print(f"skipped, {reason}: {', '.join(names)}")
    for result in results if verbose else ():
        for category, record in result["categories"].items():
            if record["status"] not in ("pass", "skipped"):
                print(
                    f"{result['kind']} {result['name']} {category}: {record['status']} "
                    f"{record['passed']}/{record['total']}: {record['failure']}"
                )


def parse(arguments):
    def names(text):
        return [name.strip() for name in text.split(",") if name.strip()]

    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument(
        "--impl",
        required=True,
        help="module to measure, e.g. flambeau; torch measures the harness itself",
    )
    p.add_argument("--ops", default="", metavar="REGEX", help="only entries whose name matches")
    p.add_argument(
        "--dtypes", type=names, default=["float32"], metavar="A,B", help="default: float32"
    )
    p.add_argument("--grad", action="store_true", help="compare gradients too")
    p.add_argument("--gradgrad", action="store_true", help="orders 1 to 3, in-place forms too")
    p.add_argument(
        "--gradgradcheck", action="store_true", help="the second order by finite differences"
    )
    p.add_argument("--tangents", action="store_true", help="derivatives in forward mode")
    p.add_argument("--layouts", action="store_true", help="results on the device meta")
    p.add_argument("--symbols", action="store_true", help="fake tensors with symbolic sizes")
    p.add_argument("--devices", action="store_true", help="on a GPU, real or emulated")
    p.add_argument("--batches", action="store_true", help="vmap beside a loop")
    p.add_argument(
        "--only", type=names, default=[], metavar="A,B", help="no other categories than these"
    )
    p.add_argument("--grad-dtypes", type=names, default=["float64", "complex128"], metavar="A,B")
    p.add_argument(
        "--bits",
        type=names,
        default=[],
        metavar="A,B",
        help="tensors are views with these bits (conj, neg) and the samples' values",
    )
    p.add_argument("--modules", action="store_true", help="also every ModuleInfo")
    p.add_argument("--optims", action="store_true", help="also every OptimizerInfo")
    p.add_argument("--no-ops", action="store_true", help="leave the OpInfos out")
    p.add_argument(
        "--reference-inputs", action="store_true", help="the database's larger set of samples"
    )
    p.add_argument(
        "--limit-samples",
        type=int,
        default=0,
        metavar="N",
        help="at most N per task, spread evenly",
    )
    p.add_argument("--jobs", type=int, default=1, metavar="N")
    p.add_argument(
        "--timeout",
        type=float,
        default=60,
        metavar="S",
        help="for one category and dtype of one entry",
    )
    p.add_argument(
        "--tol-scale", type=float, default=1, metavar="X", help="multiplies every tolerance"
    )
    p.add_argument("--out", metavar="FILE", help="write every record as JSON")
    p.add_argument(
        "-v", "--verbose", action="store_true", help="print the first failure of every category"
    )
    return p.parse_args(arguments)


def main(arguments=None):
    options, began = parse(arguments), time.time()
    sys.path.append(os.getcwd())
    todo = entries(options)
    plans = [plan(entry, options) for entry in todo]
    tasks = [
        (i, category, dtype)
        for i, p in enumerate(plans)
        for category, dtypes in p.items()
        if isinstance(dtypes, list)
        for dtype in dtypes
    ]
    if options.devices:
        begin, method = functools.partial(start_anew, options), "spawn"
    else:
        begin, method = functools.partial(start, todo, options), "fork"
    records = pool.run_all(tasks, begin, options.jobs, options.timeout, method)
    results = []
    for i, entry in enumerate(todo):
        done = {
            c: {"status": "skipped", "reason": d, "passed": 0, "total": 0}
            if isinstance(d, str)
            else combine({dtype: records[i, c, dtype] for dtype in d})
            for c, d in plans[i].items()
        }
        results.append({"kind": entry.kind, "name": entry.name, "categories": done})
    table = summarise(results)
    show(results, table, options.verbose)
    seconds = round(time.time() - began)
    print(
        f"{options.impl} against torch {torch.__version__}: {len(results)} entries in {seconds} s"
    )
    if options.out:
        meta = {"torch": torch.__version__, "seconds": seconds, "options": vars(options)}
        with open(options.out, "w") as file:
            json.dump({"meta": meta, "summary": table, "results": results}, file, indent=1)
    return results


if __name__ == "__main__":
    main()
