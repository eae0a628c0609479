"""SummaryWriter: entries of logs, and the files that they go to."""

from __future__ import annotations

import socket
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from flambeau._core.absent import refuse
from flambeau.utils.tensorboard import pictures, summary
from flambeau.utils.tensorboard.hparams import hparams

FIRST_STEP_VERSION = "brain.Event:2"


class FileWriter:
    """One file of events in a folder, which is made if it is not there."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120,
                 filename_suffix: str = "") -> None:  # fmt: skip
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self.event_writer.get_logdir()  # type: ignore[no-any-return]

    def add_event(self, event: Event, step: Any = None, walltime: float | None = None) -> None:
        """Write an event, with the time and the step at which it was."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None,
                    walltime: float | None = None) -> None:  # fmt: skip
        """Write an entry."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write what waits to be written."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Go on after `close`."""
        self.event_writer.reopen()


class SummaryWriter:
    """Logs for TensorBoard: `tensorboard --logdir runs` shows them.

    log_dir: the folder; if not given, one below `runs`, named by the time, this machine and
        `comment`.
    purge_step: entries from this step on, of a run that ended by accident, are to be left out.
    max_queue, flush_secs: how many entries wait to be written, and for how long.
    filename_suffix: the end of the files' names.

    Entries may have a `global_step`, and a `walltime` (seconds since 1970) other than now.
    """

    def __init__(self, log_dir: Any = None, comment: str = "", purge_step: int | None = None,
                 max_queue: int = 10, flush_secs: int = 120,
                 filename_suffix: str = "") -> None:  # fmt: skip
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = Path("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self.max_queue, self.flush_secs = max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """The file of this log; opened anew after `close`."""
        if self.file_writer is None:
            self.file_writer = self._opened(self.log_dir)
            if self.purge_step is not None:
                step, self.purge_step = self.purge_step, None
                self.file_writer.add_event(Event(step=step, file_version=FIRST_STEP_VERSION))
                start = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(step=step, session_log=start))
            self.all_writers = {self.log_dir: self.file_writer}
        return self.file_writer

    def _opened(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    # ---- numbers

    def add_scalar(self, tag: str, scalar_value: Any, global_step: Any = None,
                   walltime: float | None = None, new_style: bool = False,
                   double_precision: bool = False) -> None:  # fmt: skip
        """One number. `new_style`: as a tensor, in float64 with `double_precision`."""
        entry = summary.scalar(
            tag, scalar_value, new_style=new_style, double_precision=double_precision
        )
        self._add(entry, global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None,
                    walltime: float | None = None) -> None:  # fmt: skip
        """Numbers in one chart: each goes to a folder of its own."""
        self._get_file_writer()
        writers = self.all_writers
        assert writers is not None
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in writers:
                writers[folder] = self._opened(folder)
            writers[folder].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: Any = None,
                   walltime: float | None = None) -> None:  # fmt: skip
        """A tensor as it is."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: Any = None,
                      bins: Any = "tensorflow", walltime: float | None = None,
                      max_bins: int | None = None) -> None:  # fmt: skip
        """The distribution of numbers; `bins`: "tensorflow", or what `numpy.histogram` takes."""
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag: str, min: float, max: float, num: int, sum: float,
                          sum_squares: float, bucket_limits: Any, bucket_counts: Any,
                          global_step: Any = None,
                          walltime: float | None = None) -> None:  # fmt: skip
        """A distribution that the caller has counted.

        Raises:
            ValueError: there are not as many limits as counts.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        entry = summary.histogram_raw(
            tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )
        self._add(entry, global_step, walltime)

    def add_pr_curve(self, tag: str, labels: Any, predictions: Any, global_step: Any = None,
                     num_thresholds: int = 127, weights: Any = None,
                     walltime: float | None = None) -> None:  # fmt: skip
        """Precision and recall at thresholds between 0 and 1."""
        entry = summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._add(entry, global_step, walltime)

    def add_pr_curve_raw(self, tag: str, true_positive_counts: Any, false_positive_counts: Any,
                         true_negative_counts: Any, false_negative_counts: Any, precision: Any,
                         recall: Any, global_step: Any = None, num_thresholds: int = 127,
                         weights: Any = None, walltime: float | None = None) -> None:  # fmt: skip
        """The same, counted by the caller."""
        entry = summary.pr_curve_raw(
            tag, true_positive_counts, false_positive_counts, true_negative_counts,
            false_negative_counts, precision, recall, num_thresholds, weights,
        )  # fmt: skip
        self._add(entry, global_step, walltime)

    # ---- pictures, sounds, words

    def add_image(self, tag: str, img_tensor: Any, global_step: Any = None,
                  walltime: float | None = None, dataformats: str = "CHW") -> None:  # fmt: skip
        """A picture: bytes, or colours between 0 and 1."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: Any = None,
                   walltime: float | None = None, dataformats: str = "NCHW") -> None:  # fmt: skip
        """Pictures in a grid."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(self, tag: str, img_tensor: Any, box_tensor: Any,
                             global_step: Any = None, walltime: float | None = None,
                             rescale: float = 1, dataformats: str = "CHW",
                             labels: Any = None) -> None:  # fmt: skip
        """A picture with boxes (x1, y1, x2, y2) on it."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != len(box_tensor):
            labels = None
        entry = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(entry, global_step, walltime)

    def add_figure(self, tag: str, figure: Any, global_step: Any = None, close: bool = True,
                   walltime: float | None = None) -> None:  # fmt: skip
        """A figure of matplotlib, or several in a grid."""
        if isinstance(figure, list):
            import numpy as np

            pixels = np.stack([pictures.figure_pixels(one, close) for one in figure])
            self.add_images(tag, pixels, global_step, walltime)
        else:
            self.add_image(tag, pictures.figure_pixels(figure, close), global_step, walltime)

    def add_video(self, tag: str, vid_tensor: Any, global_step: Any = None, fps: float = 4,
                  walltime: float | None = None) -> None:  # fmt: skip
        """Films (number, time, colours, height, width)."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag: str, snd_tensor: Any, global_step: Any = None,
                  sample_rate: int = 44100, walltime: float | None = None) -> None:  # fmt: skip
        """Samples of one channel between -1 and 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: Any = None,
                 walltime: float | None = None) -> None:  # fmt: skip
        """Words in Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_mesh(self, tag: str, vertices: Any, colors: Any = None, faces: Any = None,
                 config_dict: Any = None, global_step: Any = None,
                 walltime: float | None = None) -> None:  # fmt: skip
        """Points in space, with colours and triangles."""
        entry = summary.mesh(tag, vertices, colors, faces, config_dict)
        self._add(entry, global_step, walltime)

    # ---- models and runs

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False,
                  use_strict_trace: bool = True) -> None:  # fmt: skip
        """Not implemented."""
        refuse("torch.utils.tensorboard.SummaryWriter.add_graph")

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Not implemented."""
        refuse("torch.utils.tensorboard.SummaryWriter.add_onnx_graph")

    def add_embedding(self, mat: Any, metadata: Any = None, label_img: Any = None,
                      global_step: Any = None, tag: str = "default",
                      metadata_header: Any = None) -> None:  # fmt: skip
        """Points (number, size) for the projector, with names and pictures."""
        from flambeau.utils.tensorboard import embeddings

        embeddings.write(self.log_dir, mat, metadata, label_img, global_step, tag, metadata_header)

    def add_hparams(self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
                    hparam_domain_discrete: Any = None, run_name: str | None = None,
                    global_step: Any = None) -> None:  # fmt: skip
        """Hyperparameters and what they came to, as a run below this one."""
        entries = hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = Path(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as run:
            for entry in entries:
                run._add(entry, global_step, None)
            for tag, value in metric_dict.items():
                run.add_scalar(tag, value, global_step)

    def add_custom_scalars(self, layout: dict[str, dict[str, Any]]) -> None:
        """How numbers are arranged in charts, by category."""
        self._add(summary.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags: list[str], category: str = "default",
                                          title: str = "untitled") -> None:  # fmt: skip
        """One chart of several numbers."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags: list[str], category: str = "default",
                                       title: str = "untitled") -> None:  # fmt: skip
        """One chart of a number between two others.

        Raises:
            AssertionError: there are not three.
        """
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    # ---- the files

    def _add(self, entry: Any, global_step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(entry, global_step, walltime)

    def flush(self) -> None:
        """Write what waits to be written."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
