"""Train on handwritten digits in several processes, in ordinary PyTorch code.

    torchrun --nproc-per-node 2 examples/ddp_digits.py          # processes that torchrun starts
    mpiexec -n 2 flambeau run examples/ddp_digits.py --bar      # that MPI starts
    flambeau run examples/ddp_digits.py --spawn 2               # that the script starts
    flambeau run examples/ddp_digits.py                         # one process

Every process trains on its share of the 1,797 digits that scikit-learn carries; gradients are
averaged. After each epoch a checkpoint is written to --out, if that is given; who starts again
goes on after the last whole one. Rank 0 prints, and draws one progress bar for all where standard
error is a terminal; mpiexec hands it on through a pipe, which --bar draws into as well.
"""

import argparse
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

MPI_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
BATCH = 64  # of all processes together


def load_data():
    """Images (N, 64) between 0 and 1 and labels, split 4:1 in a fixed random order."""
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    images, labels = images[order], labels[order]
    cut = len(images) * 4 // 5
    return TensorDataset(images[:cut], labels[:cut]), (images[cut:], labels[cut:])


def show_progress(done, total, text, always):
    """A bar on standard error, where that is a terminal, or always; only rank 0 draws it."""
    if dist.get_rank() != 0 or not (always or sys.stderr.isatty()):
        return
    filled = 30 * done // total
    end = "\n" if done == total else ""
    sys.stderr.write(f"\r[{'#' * filled}{'.' * (30 - filled)}] {text}{end}")
    sys.stderr.flush()


def say(text):
    """Print a line, once for all processes."""
    if dist.get_rank() == 0:
        print(text, flush=True)


def mean_of_all(value):
    """The mean of a number over the processes."""
    mean = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


def train(options):
    """What each process does."""
    torch.manual_seed(options.seed)
    dataset, (test_images, test_labels) = load_data()
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sampler = DistributedSampler(dataset, seed=options.seed)
    share = max(BATCH // dist.get_world_size(), 1)
    loader = DataLoader(dataset, batch_size=share, sampler=sampler)
    first = resume(options.out, model, optimizer)
    for epoch in range(first, options.epochs):
        sampler.set_epoch(epoch)
        losses = []
        for number, (images, labels) in enumerate(loader, 1):
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            show_progress(number, len(loader), f"epoch {epoch + 1}/{options.epochs}", options.bar)
        say(f"epoch {epoch + 1}  loss {mean_of_all(sum(losses) / len(losses)):.4f}")
        keep(options.out, model, optimizer, epoch + 1)
    with torch.no_grad():
        right = (model(test_images).argmax(1) == test_labels).double().mean().item()
    say(f"test accuracy {right:.2%}; processes: {dist.get_world_size()}")


def resume(folder, model, optimizer):
    """Take the last checkpoint, if there is one; the number of epochs that are done."""
    if folder is None or not (folder / ".metadata").exists():
        return 0
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    of_model, of_optimizer = get_state_dict(model, optimizer)
    state = {"model": of_model, "optimizer": of_optimizer, "epochs": 0}
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
    )
    say(f"continued after epoch {state['epochs']}")
    return state["epochs"]


def keep(folder, model, optimizer, epochs):
    """Write a checkpoint."""
    if folder is None:
        return
    from torch.distributed.checkpoint.state_dict import get_state_dict

    of_model, of_optimizer = get_state_dict(model, optimizer)
    dcp.save({"model": of_model, "optimizer": of_optimizer, "epochs": epochs}, checkpoint_id=folder)


def run_spawned(rank, options):
    """A process that this script started."""
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{options.port}", rank=rank, world_size=options.spawn
    )
    train(options)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a folder for checkpoints")
    parser.add_argument("--bar", action="store_true", help="draw the bar on no terminal, too")
    parser.add_argument("--spawn", type=int, default=0, help="start so many processes")
    parser.add_argument("--port", type=int, default=29511, help="where they meet, with --spawn")
    options = parser.parse_args()
    if options.spawn:
        torch.multiprocessing.spawn(run_spawned, (options,), nprocs=options.spawn)
        return
    if "RANK" in os.environ:  # torchrun's
        dist.init_process_group("gloo")
    elif any(name in os.environ for name in MPI_SIZES):
        dist.init_process_group("mpi")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    train(options)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
