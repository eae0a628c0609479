"""torch.utils.tensorboard: what a SummaryWriter writes, read back by the package tensorboard."""

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import torch
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
from tensorboard.compat.proto import event_pb2
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(0)
images = torch.rand(3, 3, 8, 8)


def told(message):
    """A protobuf as text, with pictures and times by what is the same for all who write them."""
    for value in message.summary.value:
        image = value.image
        if image.encoded_image_string:
            image.encoded_image_string = f"{len(image.encoded_image_string) > 60}".encode()
        plugin = value.metadata.plugin_data
        if plugin.plugin_name == "hparams":  # a map, whose order changes from run to run
            plugin.content = str(HParamsPluginData.FromString(plugin.content)).encode()
        if value.audio.encoded_audio_string:
            heard = hashlib.sha256(value.audio.encoded_audio_string).hexdigest()[:8]
            value.audio.encoded_audio_string = heard.encode()
    kept = event_pb2.Event()
    kept.CopyFrom(message)
    kept.ClearField("wall_time")
    return " ".join(str(kept).split())


with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        writer.add_scalar("loss/train", torch.tensor(0.25), 1)
        writer.add_scalar("loss/train", 0.125, 2, new_style=True)
        writer.add_scalar("exact", 0.1, 2, double_precision=True)
        writer.add_scalar("exact new", 0.1, 2, new_style=True, double_precision=True)
        writer.add_scalars("both", {"sin": 0.5, "cos": np.float32(0.75)}, 3)
        writer.add_histogram("weights", torch.linspace(-2, 3, 50), 1)
        writer.add_histogram("weights", np.arange(10.0), 2, bins="auto")
        writer.add_histogram("few", torch.tensor([1.0, 1, 4]), 3, max_bins=8)
        writer.add_histogram_raw("raw", 0, 4, 5, 10, 30, [1, 2, 4], [1, 2, 2], 4)
        writer.add_image("image", images[0], 1)
        writer.add_image("grey", torch.randint(0, 255, (8, 8), dtype=torch.uint8), 1,
                         dataformats="HW")  # fmt: skip
        writer.add_images("images", images, 1)
        writer.add_image_with_boxes("boxes", images[0], torch.tensor([[1.0, 1, 5, 6]]), 1)
        writer.add_text("note", "a *word*", 2)
        writer.add_tensor("tensor", torch.arange(6.0).reshape(2, 3), 1)
        writer.add_pr_curve("curve", np.array([0, 1, 1, 0]), np.array([0.1, 0.6, 0.4, 0.7]), 1,
                            num_thresholds=5)  # fmt: skip
        writer.add_pr_curve_raw("curve raw", [3, 1], [2, 1], [0, 1], [0, 2], [0.6, 0.5], [1, 0.3],
                                num_thresholds=2)  # fmt: skip
        writer.add_mesh("mesh", torch.rand(1, 4, 3), torch.randint(0, 255, (1, 4, 3)),
                        torch.tensor([[[0, 1, 2], [1, 2, 3]]]), {"material": 1}, 2)  # fmt: skip
        writer.add_audio("sound", torch.sin(torch.arange(200) / 10), 1, sample_rate=8000)
        writer.add_custom_scalars({"Group": {"Lines": ["Multiline", ["loss/train", "exact"]]}})
        writer.add_custom_scalars_marginchart(["a", "b", "c"])
        writer.add_embedding(torch.arange(12.0).reshape(4, 3), ["a", "b", "c", "d"], global_step=7)
        writer.add_embedding(torch.ones(2, 2), [["x", "1"], ["y", "2"]], tag="two",
                             metadata_header=["name", "number"])  # fmt: skip
        writer.add_hparams(
            {"rate": 0.1, "name": "adam", "nesterov": True, "steps": 3}, {"accuracy": 0.5},
            {"rate": [0.1, 0.2]}, run_name="run",
        )  # fmt: skip
        print("folder", writer.get_logdir() == folder)
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    for path in files:
        name = str(path.relative_to(folder))
        if "tfevents" not in name:
            print("file", name, path.read_text())
            continue
        print("events", "/".join(name.split("/")[:-1]))
        for event in LegacyEventFileLoader(str(path)).Load():
            print(told(event)[:700])
