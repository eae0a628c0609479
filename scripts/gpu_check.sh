#!/bin/sh
# What holds on a machine with an NVIDIA GPU, and what it takes: one command, results as JSON.
#
#     scripts/gpu_check.sh FOLDER [PART...]
#
# Parts are programs and packages in scripts/gpu_check/ and programs of the conformance suite; each writes
# FOLDER/PART.json and FOLDER/PART.log, and stops after its time. Without names, all run, those
# whose result is there already left out. PyTorch, where it is installed, is timed beside.
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: gpu_check.sh FOLDER [PART...]}
shift
mkdir -p "$out"
out=$(cd "$out" && pwd)
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
cd "$root" || exit 1

part() { # name, seconds, command
    name=$1 limit=$2
    shift 2
    case " $wanted " in *" $name "*) ;; *) return ;; esac
    [ -z "$named" ] && [ -e "$out/$name.done" ] && return
    begin=$(date +%s)
    timeout "$limit" "$@" >"$out/$name.log" 2>&1
    code=$?
    [ $code -eq 0 ] && touch "$out/$name.done"
    echo "== $name: exit $code, $(($(date +%s) - begin)) s"
    tail -n "${LINES_SHOWN:-6}" "$out/$name.log" | cut -c1-400
}

named=$*
wanted=${named:-driver kernels libraries training facts sanitizer golden scripts random operators products}
script="python3 scripts/gpu_check" package="python3 -m scripts.gpu_check"
part driver 45 $package.driver --out "$out/driver.json"
part kernels 75 $script/kernels.py --out "$out/kernels.json"
part libraries 75 $package.libraries --out "$out/libraries.json"
part training 90 $script/training.py --out "$out/training.json"
part facts 60 sh -c "python3 tests/cuda/emulated.py && python3 tests/cuda/emulated_determinism.py"
command -v compute-sanitizer >/dev/null && part sanitizer 60 compute-sanitizer --tool memcheck \
    --error-exitcode 9 --log-file "$out/sanitizer.txt" $script/sanitized.py
[ -n "$GOLDEN" ] && part golden 60 python3 -m flambeau run "$GOLDEN/golden.py" --check "$GOLDEN/golden.json"
[ -n "$SCRIPTS" ] && part scripts 150 $script/seed_scripts.py "$SCRIPTS" --out "$out/scripts.json"
part random 50 $script/random_streams.py --out "$out/random.json"
python3 -c "import expecttest" 2>/dev/null || echo "== operators: PyTorch's database needs: pip install expecttest"
part operators 90 sh -c "cd conformance/opinfo && exec python3 opinfo.py --impl flambeau --devices \
    --only devices --limit-samples 2 --dtypes float32 --jobs 12 --timeout 40 --out '$out/operators.json'"
part products 70 $script/cpu_products.py --out "$out/products.json"
python3 - "$out" <<'JOIN' # all of it in one file
import json, pathlib, sys
out = pathlib.Path(sys.argv[1])
parts = {path.stem: json.loads(path.read_text()) for path in sorted(out.glob("*.json")) if path.stem != "results"}
(out / "results.json").write_text(json.dumps(parts, indent=1))
JOIN
