"""NVIDIA GPUs: the driver, memory, streams, and the launch of kernels. Nothing here knows tensors.

`driver.py` says what is asked of a driver; `libcuda.py` asks NVIDIA's, `fake.py` plays one on the
CPU. `memory.py` hands out device memory; `launch.py` compiles kernels and puts them into a stream.
"""
