#!/bin/sh
# A folder with all that the function needs but the model: `sh examples/serverless/build.sh FOLDER`, from the checkout.
set -eu
target=$1
python -m pip install --quiet --target "$target" transformers
# llvmlite, two thirds of what flambeau would bring, stays out: kernels run as NumPy calls then.
python -m pip install --quiet --target "$target" --no-deps . packaging/torch-shim ml_dtypes
cp examples/serverless/handler.py "$target"
# What no function imports: compiled files are made anew where they may be, tests and headers are for builds.
find "$target" -name __pycache__ -prune -exec rm -rf {} +
find "$target/numpy" -type d -name tests -prune -exec rm -rf {} +
rm -rf "$target/bin" "$target/hf_xet" "$target/numpy/_core/include" "$target/numpy/_core/lib"
du -sm "$target"
