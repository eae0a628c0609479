"""Worker processes: a crash or a hang costs one task, never the run."""

import multiprocessing
import sys
import time
from multiprocessing.connection import wait

import torch


def work(pipe, start):
    """Receives tasks until None; answers ("size", samples) as soon as known, then ("done", record)."""
    torch.set_num_threads(1)
    try:
        run = start()
    except BaseException as error:
        pipe.send(("fatal", f"cannot start: {type(error).__name__}: {error}"))
        return
    while (task := pipe.recv()) is not None:
        try:
            record = run(*task, lambda size: pipe.send(("size", size)))
        except Exception as error:
            record = lost(1, f"harness: {type(error).__name__}: {error}")
        pipe.send(("done", record))


def lost(size, failure):
    return {"passed": 0, "total": size, "failure": failure}


class Worker:
    def __init__(self, start, method):
        context = multiprocessing.get_context(method)
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, start), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, task):
        self.task, self.size, self.since = task, 0, time.monotonic()
        self.pipe.send(task)

    def listen(self, results, queue):
        """Takes in what the worker has said. Returns why it must go, or None."""
        try:
            while self.task is not None and self.pipe.poll():
                message, value = self.pipe.recv()
                if message == "fatal":
                    sys.exit(value)
                if message == "size":
                    self.size, self.since = max(value, 1), time.monotonic()
                else:
                    results[self.task] = value
                    self.give(queue.pop() if queue else None)
        except (EOFError, OSError):
            self.process.join()
            return f"crash: the process ended with exit code {self.process.exitcode}"


def run_all(tasks, start, jobs, timeout, method="fork"):
    """{task: record} for every task. start(), called in each worker, returns the function that runs one.

    A GPU that was in use before a fork is of no use after it: `method` "spawn".
    """
    queue, results, workers, retried = list(reversed(tasks)), {}, [], set()
    while queue or workers:
        while queue and len(workers) < jobs:
            workers.append(Worker(start, method))
            workers[-1].give(queue.pop())
        wait([w.pipe for w in workers], timeout=1)
        for worker in list(workers):
            trouble = worker.listen(results, queue)
            if (
                not trouble
                and worker.task is not None
                and time.monotonic() - worker.since > timeout
            ):
                trouble = f"timeout: more than {timeout:g} s"
            if trouble:
                worker.process.kill()
                if worker.size or worker.task in retried:
                    results[worker.task] = lost(worker.size or 1, trouble)
                else:  # it had not reached the implementation: an earlier task may be to blame
                    retried.add(worker.task)
                    queue.append(worker.task)
            if trouble or worker.task is None:
                workers.remove(worker)
        if sys.stderr.isatty():
            print(
                f"\r{len(results)}/{len(tasks)}",
                end="\n" if len(results) == len(tasks) else "",
                file=sys.stderr,
            )
    return results
