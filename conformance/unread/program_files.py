"""Calls of what reads and writes files, of storages, scripts and the profiler."""

from __future__ import annotations

from .program import MODEL, SWITCH, Program

FILE = (
    "import io\nb = io.BytesIO()\n"
    "torch.save({'w': torch.arange(3.0), 'v': [1, 'a']}, b)\nb.seek(0)\n"
)
ON_DISK = (
    "import tempfile\nh = tempfile.TemporaryDirectory()\nd = h.name + '/f.pt'\n"
    "torch.save({'w': torch.arange(3.0)}, d)\nfrom pathlib import Path\n"
)
SIXTEEN_BYTES = (
    "import tempfile\nh = tempfile.TemporaryDirectory()\nd = h.name + '/f'\n"
    "with open(d, 'wb') as w:\n    w.write(bytes(16))\nw = 0\n"
)
GONE = "h.cleanup()\nh = d = 0\n"
TRACED = "f = lambda x: x + torch.rand(2)\n"
LISTED = "names = lambda p: sorted(set(e.key for e in p.key_averages()))\n"

ON_FILES: tuple[Program, ...] = (
    # ---- files
    *[Program("torch.save", "_use_new_zipfile_serialization", SWITCH,
              f"import io\nb = io.BytesIO()\ntorch.save({what}, b, "
              "_use_new_zipfile_serialization=VALUE)\nr = list(b.getvalue()[:2])\n")
      for what in ("torch.arange(3.0)", "{'a': 1}")],
    Program("torch.save", "pickle_protocol", ("2", "3", "4", "5"),
            "import io, zipfile\nb = io.BytesIO()\ntorch.save({'a': 1}, b, pickle_protocol=VALUE)\n"
            "z = zipfile.ZipFile(b)\n"
            "r = list(z.read([n for n in z.namelist() if n.endswith('data.pkl')][0])[:2])\n"
            "z = 0\n"),
    Program("torch.save", "pickle_module", ("pickle", "mine"),
            "import io, pickle, types\nb = io.BytesIO()\nmine = types.ModuleType('mine')\n"
            "used = []\n"
            "mine.Pickler = type('P', (pickle.Pickler,), {'__init__': lambda s, *a, **k: "
            "(used.append(1), pickle.Pickler.__init__(s, *a, **k))[1] and None})\n"
            "mine.dumps = pickle.dumps\nmine.dump = pickle.dump\n"
            "torch.save({'a': 1}, b, pickle_module=VALUE)\nr = len(used)\n"),
    Program("torch.save", "_disable_byteorder_record", SWITCH,
            "import io, zipfile\nb = io.BytesIO()\n"
            "torch.save({'a': 1}, b, _disable_byteorder_record=VALUE)\n"
            "r = [n.split('/')[-1] for n in zipfile.ZipFile(b).namelist()]\n"),
    Program("torch.load", "map_location",
            ("None", "'cpu'", "torch.device('cpu')", "{}", "{'cpu': 'cpu'}", "'cuda'",
             "{'cpu': 'cuda'}", "lambda s, l: s", "lambda s, l: None", "'nope'", "'meta'"),
            FILE + "r = torch.load(b, map_location=VALUE)\nr = (r['w'], r['v'])\n"),
    Program("torch.load", "mmap", ("None", "False", "True"),
            FILE + "r = torch.load(b, mmap=VALUE)['w']\n"),
    Program("torch.load", "mmap", ("None", "False", "True"),
            ON_DISK + "r = torch.load(d, mmap=VALUE)['w']\n"
            "n = r.untyped_storage().filename is None\n" + GONE),
    Program("torch.load", "weights_only", ("None", "True", "False"),
            "import io, fractions\nb = io.BytesIO()\ntorch.save(fractions.Fraction(1, 2), b)\n"
            "b.seek(0)\nr = str(torch.load(b, weights_only=VALUE))\n"),
    Program("torch.load", "pickle_module", ("None", "pickle", "mine"),
            FILE + "import pickle, types\nmine = types.ModuleType('mine')\nused = []\n"
            "mine.Unpickler = type('U', (pickle.Unpickler,), {'find_class': lambda s, m, n: "
            "used.append(1) or pickle.Unpickler.find_class(s, m, n)})\nmine.load = pickle.load\n"
            "r = torch.load(b, pickle_module=VALUE, weights_only=False)['w']\n"
            "used = len(used) > 0\n"),
    Program("torch.load", "pickle_module", ("None", "pickle"),
            FILE + "import pickle\n"
            "r = torch.load(b, pickle_module=VALUE, weights_only=True)['w']\n"),
    Program("torch.load", "pickle_load_args",
            ("encoding='latin1'", "encoding='ascii'", "nope=1", "fix_imports=True"),
            FILE + "r = torch.load(b, weights_only=False, VALUE)['w']\n"),
    Program("torch.load", "pickle_load_args", ("encoding='latin1'", "nope=1"),
            FILE + "r = torch.load(b, VALUE)['w']\n"),
    Program("torch.serialization.add_safe_globals", "safe_globals", ("[]", "[Fraction]"),
            "import io\nfrom fractions import Fraction\nb = io.BytesIO()\n"
            "torch.save(Fraction(1, 2), b)\nb.seek(0)\n"
            "torch.serialization.clear_safe_globals()\n"
            "torch.serialization.add_safe_globals(VALUE)\n"
            "r = len(torch.serialization.get_safe_globals())\n"
            "torch.serialization.clear_safe_globals()\n"),
    Program("torch.serialization.skip_data", "materialize_fake_tensors", SWITCH,
            "import io\nb = io.BytesIO()\n"
            "with torch.serialization.skip_data(materialize_fake_tensors=VALUE):\n"
            "    torch.save(torch.ones(3), b)\nr = len(b.getvalue()) > 500\n"),
    Program("torch.serialization.set_crc32_options", "compute_crc32", SWITCH,
            "import io, zipfile\nb = io.BytesIO()\nold = torch.serialization.get_crc32_options()\n"
            "torch.serialization.set_crc32_options(VALUE)\ntorch.save(torch.arange(3.0), b)\n"
            "torch.serialization.set_crc32_options(old)\n"
            "r = [i.CRC for i in zipfile.ZipFile(b).infolist() "
            "if i.filename.endswith('data/0')]\n"),
    Program("torch.serialization.set_default_load_endianness", "endianness",
            ("None", "torch.serialization.LoadEndianness.BIG",
             "torch.serialization.LoadEndianness.LITTLE"),
            "import io\nb = io.BytesIO()\ntorch.save(torch.arange(3.0), b, "
            "_disable_byteorder_record=True)\nb.seek(0)\n"
            "torch.serialization.set_default_load_endianness(VALUE)\nr = torch.load(b)\n"
            "torch.serialization.set_default_load_endianness(None)\n"),
    Program("torch.serialization.set_default_mmap_options", "flags", ("1", "2"),
            ON_DISK + "old = torch.serialization.get_default_mmap_options()\n"
            "torch.serialization.set_default_mmap_options(VALUE)\n"
            "r = torch.load(d, mmap=True)['w']\nr[0] = 5\n"
            "torch.serialization.set_default_mmap_options(old)\n"
            "r = torch.load(d)['w']\n" + GONE),
    Program("torch.UntypedStorage.from_file", "shared", SWITCH,
            SIXTEEN_BYTES + "s = torch.UntypedStorage.from_file(d, VALUE, 16)\ns[0] = 7\n"
            "with open(d, 'rb') as w:\n    r = w.read()[0]\nw = 0\n" + GONE),
    Program("torch.from_file", "shared", ("None", *SWITCH),
            SIXTEEN_BYTES + "t = torch.from_file(d, VALUE, 4)\nt[0] = 7\n"
            "with open(d, 'rb') as w:\n    r = w.read()[2]\nw = 0\n" + GONE),
    Program("torch.from_file", "size", ("0", "2", "4"),
            SIXTEEN_BYTES + "r = torch.from_file(d, size=VALUE)\n" + GONE),
    # ---- storages
    Program("torch.UntypedStorage.type", "dtype", ("None", "torch.float32", "'torch.FloatStorage'"),
            "r = torch.ones(2).untyped_storage().type(VALUE)\nr = str(type(r))\n"),
    Program("torch.UntypedStorage.is_pinned", "device", ("'cuda'", "'cpu'", "'nope'"),
            "r = torch.ones(2).untyped_storage().is_pinned(VALUE)\n"),
    Program("torch.TypedStorage.is_pinned", "device", ("'cuda'", "'cpu'", "'nope'"),
            "r = torch.ones(2).storage().is_pinned(VALUE)\n"),
    Program("torch.UntypedStorage.pin_memory", "device", ("'cuda'", "'cpu'"),
            "r = torch.ones(2).untyped_storage().pin_memory(VALUE)\n"),
    Program("torch.UntypedStorage.to", "device", ("torch.device('cpu')", "torch.device('cuda')"),
            "r = torch.ones(2).untyped_storage().to(device=VALUE).nbytes()\n"),
    Program("torch.UntypedStorage.cuda", "device", ("None", "0"),
            "r = torch.ones(2).untyped_storage().cuda(VALUE)\n"),
    Program("torch.UntypedStorage.byteswap", "dtype", ("torch.int16", "torch.int32"),
            "x = torch.arange(4, dtype=torch.int32)\nx.untyped_storage().byteswap(VALUE)\nr = x\n"),
    Program("torch.TypedStorage", "device", ("None", "'cpu'", "'cuda'"),
            "r = torch.TypedStorage(3, dtype=torch.float32, device=VALUE).nbytes()\n"),
    Program("torch.UntypedStorage", "device", ("None", "'cpu'", "'cuda'"),
            "r = torch.UntypedStorage(3, device=VALUE).nbytes()\n"),
    # ---- scripts
    Program("torch.jit.trace", "check_trace", SWITCH,
            TRACED + "r = torch.jit.trace(f, torch.ones(2), check_trace=VALUE).code\n"),
    Program("torch.jit.trace", "check_inputs", ("None", "[(torch.ones(3),)]"),
            "f = lambda x: x * x.shape[0] + float(x.shape[0])\n"
            "r = torch.jit.trace(f, (torch.ones(2),), check_inputs=VALUE).code\n"),
    Program("torch.jit.trace", "check_tolerance", ("1e-5", "10.0"),
            "k = [0.0]\ndef f(x):\n    k[0] += 1.0\n    return x + k[0]\n"
            "r = torch.jit.trace(f, (torch.ones(2),), check_tolerance=VALUE).code\n"),
    Program("torch.jit.trace", "strict", SWITCH,
            "f = lambda x: {'a': x, 'b': x + 1}\n"
            "r = torch.jit.trace(f, (torch.ones(2),), strict=VALUE).code\n"),
    Program("torch.jit.trace", "optimize", ("None", "True", "False"),
            "r = torch.jit.trace(lambda x: x + 1, (torch.ones(2),), optimize=VALUE).code\n"),
    Program("torch.jit.trace_module", "optimize", ("None", "True", "False"),
            MODEL + "r = torch.jit.trace_module(m, {'forward': torch.ones(2, 3)}, "
            "optimize=VALUE).code\n"),
    Program("torch.jit.trace", "_force_outplace", SWITCH,
            "def f(x):\n    y = x + 1\n    y.add_(2)\n    return y\n"
            "r = torch.jit.trace(f, (torch.ones(2),), _force_outplace=VALUE).code\n"),
    Program("torch.jit.trace", "_store_inputs", SWITCH,
            "f = torch.jit.trace(lambda x: x + 1, (torch.ones(2),), _store_inputs=VALUE)\n"
            "r = f.code\n"),
    Program("torch.jit.trace", "example_kwarg_inputs", ("None", "{'x': torch.ones(3)}"),
            "f = lambda x: x + 1\n"
            "r = torch.jit.trace(f, example_kwarg_inputs=VALUE).code\n"),
    Program("torch.jit.script", "optimize", ("None", "True", "False"),
            "src = 'def f(x):\\n    return x + 1\\n'\nimport linecache\n"
            "linecache.cache['<u>'] = (len(src), None, src.splitlines(True), '<u>')\n"
            "ns = {}\nexec(compile(src, '<u>', 'exec'), ns)\n"
            "r = torch.jit.script(ns['f'], optimize=VALUE).code\nns = 0\n"),
    Program("torch.jit.load", "map_location", ("None", "'cpu'", "'cuda'"),
            MODEL + "import io\nb = io.BytesIO()\ntorch.jit.save(torch.jit.script(m), b)\n"
            "b.seek(0)\nr = torch.jit.load(b, map_location=VALUE).code\n"),
    Program("torch.jit.load", "_restore_shapes", SWITCH,
            "import io\nb = io.BytesIO()\n"
            "t = torch.jit.trace(lambda x: x + 1, (torch.ones(2),))\ntorch.jit.save(t, b)\n"
            "b.seek(0)\nt = 0\nr = torch.jit.load(b, _restore_shapes=VALUE).code\n"),
    Program("torch.jit.save", "_extra_files", ("None", "{'a.txt': b'hello'}"),
            MODEL + "import io, zipfile\nb = io.BytesIO()\n"
            "torch.jit.save(torch.jit.script(m), b, _extra_files=VALUE)\n"
            "r = [n for n in zipfile.ZipFile(b).namelist() if 'a.txt' in n]\n"),
    Program("torch.jit.freeze", "preserved_attrs", ("None", "['0']"),
            MODEL + "r = sorted(n for n, _ in torch.jit.freeze(torch.jit.script(m.eval()), VALUE)"
            ".named_modules())\n"),
    Program("torch.jit.freeze", "optimize_numerics", SWITCH,
            "m = torch.nn.Sequential(torch.nn.Conv1d(2, 2, 1), torch.nn.BatchNorm1d(2)).eval()\n"
            "r = 'batch_norm' in torch.jit.freeze(torch.jit.script(m), "
            "optimize_numerics=VALUE).code\n"),
    Program("torch.jit.annotate", "the_type", ("int", "str"),
            "r = torch.jit.annotate(VALUE, 3)\n"),
    Program("torch.jit.optimized_execution", "should_optimize", SWITCH,
            "with torch.jit.optimized_execution(VALUE):\n"
            "    r = torch._C._get_graph_executor_optimize()\n"),
    Program("torch.jit.set_fusion_strategy", "strategy",
            ("[('STATIC', 2)]", "[('DYNAMIC', 3)]", "[('NOPE', 3)]"),
            "old = torch.jit.set_fusion_strategy(VALUE)\nr = torch.jit.set_fusion_strategy(old)\n"),
    Program("torch.jit.ignore", "drop", SWITCH,
            "r = torch.jit.ignore(drop=VALUE)(lambda x: x)._torchscript_modifier.name\n"),
    Program("torch.jit.export_opnames", "m", ("torch.nn.Linear(2, 2)", "torch.nn.ReLU()"),
            "r = sorted(torch.jit.export_opnames(torch.jit.script(VALUE)))\n"),
    # ---- the profiler
    *[Program("torch.profiler.profile", option, SWITCH,
              LISTED + "with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU"
              f"], {option}=VALUE) as p:\n    torch.ones(2, 2).mm(torch.ones(2, 2))\n"
              f"r = {look}\np = 0\n")
      for option, look in (
          ("record_shapes", "[e.input_shapes for e in p.events() if e.name == 'aten::mm']"),
          ("with_flops", "[e.flops for e in p.events() if e.name == 'aten::mm']"),
          ("profile_memory", "sum(e.cpu_memory_usage for e in p.events() if e.name == 'aten::mm')"),
          ("with_stack", "[len(e.stack) > 0 for e in p.events() if e.name == 'aten::mm']"),
          ("with_modules", "names(p)"), ("acc_events", "names(p)"))],
    *[Program("torch.autograd.profiler.profile", option, SWITCH,
              LISTED + f"with torch.autograd.profiler.profile({option}=VALUE) as p:\n"
              "    torch.ones(2, 2).mm(torch.ones(2, 2))\n"
              f"r = {look}\np = 0\n")
      for option, look in (
          ("enabled", "[e.name for e in (p.function_events or [])]"),
          ("record_shapes", "[e.input_shapes for e in p.function_events if e.name == 'aten::mm']"),
          ("with_flops", "[e.flops for e in p.function_events if e.name == 'aten::mm']"),
          ("profile_memory",
           "sum(e.cpu_memory_usage for e in p.function_events if e.name == 'aten::mm')"),
          ("with_stack", "[len(e.stack) > 0 for e in p.function_events if e.name == 'aten::mm']"),
          ("with_modules", "len(p.function_events)"),
          ("use_kineto", "len(p.function_events)"),
          ("use_cpu", "len(p.function_events)"),
          ("acc_events", "len(p.function_events)"))],
    Program("torch.autograd.profiler.profile", "use_device", ("None", "'cuda'", "'nope'"),
            "with torch.autograd.profiler.profile(use_device=VALUE) as p:\n    torch.ones(2)\n"
            "r = len(p.function_events)\np = 0\n"),
    Program("torch.profiler.schedule", "skip_first", ("0", "2"),
            "s = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1, skip_first=VALUE)\n"
            "r = [s(i).name for i in range(8)]\n"),
    Program("torch.profiler.schedule", "skip_first_wait", ("0", "1"),
            "s = torch.profiler.schedule(wait=1, warmup=1, active=1, skip_first=1, "
            "skip_first_wait=VALUE)\nr = [s(i).name for i in range(8)]\n"),
    *[Program("torch.autograd.profiler_util.EventList.table", option, values,
              "with torch.autograd.profiler.profile(record_shapes=True) as p:\n"
              "    torch.ones(2, 2).mm(torch.ones(2, 2))\n    torch.ones(3).exp()\n"
              f"r = {look.format(f'p.key_averages().table({option}=VALUE)')}\np = 0\n")
      for option, values, look in (
          ("row_limit", ("100", "1"), "len({}.splitlines())"),
          ("header", ("None", "'HEAD'"), "'HEAD' in {}"),
          ("top_level_events_only", SWITCH, "len({}.splitlines())"),
          ("max_name_column_width", ("55", "8"), "len({}.splitlines()[0])"),
          ("time_unit", ("'ms'", "'s'"), "{}[-200:].count('ms')"),
          ("max_src_column_width", ("75", "10"), "len({}.splitlines()[0])"))],
)  # fmt: skip
