"""Pictures, films and sounds as the bytes of files."""

from __future__ import annotations

import io
import wave
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary

ACROSS = 8
"""How many pictures stand in a row of a grid."""


def as_hwc(pixels: np.ndarray, dataformats: str) -> np.ndarray:
    """Pixels (height, width, 3) of what has other dims, named by letters; a batch as a grid.

    Raises:
        AssertionError: a letter stands twice, or the letters do not fit the dims.
    """
    assert len(set(dataformats)) == len(dataformats), (
        f"You can not use the same dimension shordhand twice. input_format: {dataformats}"
    )
    assert len(dataformats) == pixels.ndim, (
        "size of input tensor and input format are different. "
        f"tensor shape: {pixels.shape}, input_format: {dataformats}"
    )
    letters = dataformats.upper()
    if pixels.ndim == 4:
        return _grid(pixels.transpose([letters.index(letter) for letter in "NHWC"]))
    if pixels.ndim == 2:
        pixels, letters = pixels[..., None], f"{letters}C"
    return _coloured(pixels.transpose([letters.index(letter) for letter in "HWC"]))


def _coloured(pixels: np.ndarray) -> np.ndarray:
    """Grey as three equal colours."""
    return np.repeat(pixels, 3, axis=-1) if pixels.shape[-1] == 1 else pixels


def _grid(pictures: np.ndarray) -> np.ndarray:
    """Pictures (number, height, width, colours) beside and below one another."""
    pictures = _coloured(pictures)
    number, height, width, colours = pictures.shape
    across = min(number, ACROSS)
    down = -(-number // across)
    whole = np.zeros((down * across, height, width, colours), pictures.dtype)
    whole[:number] = pictures
    whole = whole.reshape(down, across, height, width, colours).transpose(0, 2, 1, 3, 4)
    return whole.reshape(down * height, across * width, colours)


def as_bytes(pixels: np.ndarray) -> np.ndarray:
    """Colours as bytes: those of floating point lie between 0 and 1."""
    scale = 1 if pixels.dtype == np.uint8 else 255
    return np.clip(pixels.astype(np.float32) * scale, 0, 255).astype(np.uint8)


def image(pixels: np.ndarray, rescale: float = 1, boxes: np.ndarray | None = None,
          labels: list[str] | None = None) -> Summary.Image:  # fmt: skip
    """A picture of bytes (height, width, colours), with boxes (x1, y1, x2, y2) drawn on it."""
    from PIL import Image, ImageDraw

    height, width, colours = pixels.shape
    drawn = Image.fromarray(pixels)
    if boxes is not None:
        pen = ImageDraw.Draw(drawn)
        for number, box in enumerate(boxes.tolist()):
            pen.rectangle(box, outline="red", width=2)
            if labels is not None:
                pen.text((box[0], box[1]), labels[number], fill="red")
    height, width = int(height * rescale), int(width * rescale)
    drawn = drawn.resize((width, height))
    file = io.BytesIO()
    drawn.save(file, format="PNG")
    return Summary.Image(
        height=height, width=width, colorspace=colours, encoded_image_string=file.getvalue()
    )


def film(pixels: np.ndarray, fps: float) -> Summary.Image:
    """A film (number, time, colours, height, width) of bytes as an animation, side by side."""
    from PIL import Image

    frames = [_grid(still.transpose(0, 2, 3, 1)) for still in pixels.swapaxes(0, 1)]
    first, *others = (Image.fromarray(frame) for frame in frames)
    file = io.BytesIO()
    first.save(file, format="GIF", save_all=True, append_images=others,
               duration=1000 / fps, loop=0)  # fmt: skip
    height, width, colours = frames[0].shape
    return Summary.Image(
        height=height, width=width, colorspace=colours, encoded_image_string=file.getvalue()
    )


def sound(samples: np.ndarray, rate: int) -> Summary.Audio:
    """One channel of samples between -1 and 1."""
    samples = np.clip(samples.squeeze(), -1, 1)
    assert samples.ndim == 1, "input tensor should be 1 dimensional."
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(rate)
        written.writeframes((samples * np.iinfo(np.int16).max).astype("<i2").tobytes())
    return Summary.Audio(
        sample_rate=rate, num_channels=1, length_frames=len(samples),
        encoded_audio_string=file.getvalue(), content_type="audio/wav",
    )  # fmt: skip


def figure_pixels(figure: Any, close: bool) -> np.ndarray:
    """A figure of matplotlib as bytes (colours, height, width)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3].transpose(2, 0, 1)
    if close:
        import matplotlib.pyplot as plt

        plt.close(figure)
    return pixels
