#!/bin/sh
# A folder with all that the function needs but the model: `sh examples/serverless/build.sh FOLDER [MODEL]`, from the
# checkout. MODEL: the folder of the model for which kernels are made beforehand; flambeau and transformers have to be
# installed for that, and the processor to be no wider than that of the function (FLAMBEAU_CPU=avx2 fits most).
set -eu
target=$1
python -m pip install --quiet --target "$target" transformers
# llvmlite, two thirds of what flambeau would bring, stays out: kernels come from a library, or run as NumPy calls.
python -m pip install --quiet --target "$target" --no-deps . packaging/torch-shim ml_dtypes
cp examples/serverless/handler.py "$target"
if [ $# -gt 1 ]; then
    MODEL=$2 FLAMBEAU_CPU=${FLAMBEAU_CPU:-avx2} python -m flambeau warmup --library "$target/kernels" -- \
        examples/serverless/handler.py
fi
# What no function imports: compiled files are made anew where they may be, tests and headers are for builds.
find "$target" -name __pycache__ -prune -exec rm -rf {} +
find "$target/numpy" -type d -name tests -prune -exec rm -rf {} +
rm -rf "$target/bin" "$target/hf_xet" "$target/numpy/_core/include" "$target/numpy/_core/lib"
du -sm "$target"
