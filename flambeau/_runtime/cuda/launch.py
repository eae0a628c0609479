"""From a kernel's definition to a launch on a device.

    k = kernel(fill, threads=256, T=f32, V=4)     # from this process, the disk or the compiler
    k(blocks, x, count, 1.0)                      # into the current stream

Arguments are device arrays (their first element), addresses and numbers, 64 bits each. On the fake
driver the same text runs on the CPU, a thread of a block after the other between barriers.
"""
