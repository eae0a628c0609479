"""Communication hooks: how a bucket of gradients is averaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core import dtype as dt
from flambeau.distributed import collectives
from flambeau.distributed.data_parallel.buckets import GradBucket
from flambeau.distributed.world import the_group
from flambeau.futures import Future

Hook = Callable[[Any, GradBucket], Future[Any]]


def _averaged(group: Any, tensor: Any) -> Future[Any]:
    """The average of a tensor over the processes, in place."""
    tensor.div_(the_group(group).size())
    work: Any = collectives.all_reduce(tensor, group=group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])  # type: ignore[no-any-return]


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """The average, as without a hook."""
    return _averaged(process_group, bucket.buffer())


def _compressed(group: Any, buffer: Any, element: dt.dtype) -> Future[Any]:
    averaged = _averaged(group, buffer.to(element))
    return averaged.then(lambda future: buffer.copy_(future.value()))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """The average of gradients rounded to float16."""
    return _compressed(process_group, bucket.buffer(), dt.float16)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Any]:
    """The average of gradients rounded to bfloat16."""
    return _compressed(process_group, bucket.buffer(), dt.bfloat16)


def _wrapped(hook: Hook, element: dt.dtype) -> Hook:
    def compress(state: Any, bucket: GradBucket) -> Future[Any]:
        whole: Any = bucket.buffer()
        bucket.set_buffer(whole.to(element))

        def widen(future: Future[Any]) -> Any:
            value = future.value()
            narrow = value[0] if isinstance(value, list) else value
            bucket.set_buffer(whole)
            return whole.copy_(narrow)

        return hook(state, bucket).then(widen)

    return compress


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gets the gradients rounded to float16."""
    return _wrapped(hook, dt.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that gets the gradients rounded to bfloat16."""
    return _wrapped(hook, dt.bfloat16)
