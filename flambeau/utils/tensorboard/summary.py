"""Entries of logs: one function for each kind, which returns a Summary."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

from flambeau.utils.tensorboard import pictures
from flambeau.utils.tensorboard._convert_np import make_np
from flambeau.utils.tensorboard.histograms import geometric_limits, make_histogram

LAYOUT_TAG = "custom_scalars__config__"
LEAST = 1e-7
"""What a share's denominator is at least."""
KINDS = {"f4": "DT_FLOAT", "f8": "DT_DOUBLE", "i4": "DT_INT32", "i8": "DT_INT64", "u1": "DT_UINT8"}
FIELDS = {"DT_FLOAT": "float_val", "DT_DOUBLE": "double_val", "DT_INT64": "int64_val"}


def _metadata(plugin: str, content: bytes = b"") -> SummaryMetadata:
    data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return SummaryMetadata(plugin_data=data)


def _shape(sizes: Any) -> TensorShapeProto:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])


def _tensor(values: np.ndarray, shaped: bool = True) -> TensorProto:
    """An array as a message; types without one become float32."""
    kind = KINDS.get(values.dtype.str[1:], "DT_FLOAT")
    numbers = values.reshape(-1).tolist()
    proto = TensorProto(dtype=kind, **{FIELDS.get(kind, "int_val"): numbers})
    if shaped:
        proto.tensor_shape.CopyFrom(_shape(values.shape))
    return proto


def _one(**parts: Any) -> Summary:
    return Summary(value=[Summary.Value(**parts)])


def scalar(name: str, tensor: Any, collections: Any = None, new_style: bool = False,
           double_precision: bool = False) -> Summary:  # fmt: skip
    """One number."""
    value = make_np(tensor).squeeze()
    assert value.ndim == 0, f"Tensor should contain one element (0 dimensions). Was given size: {value.size} and {value.ndim} dimensions."  # fmt: skip  # noqa: E501
    if not new_style:
        return _one(tag=name, simple_value=float(value))
    held = value.astype(np.float64 if double_precision else np.float32)
    return _one(tag=name, tensor=_tensor(held, shaped=False), metadata=_metadata("scalars"))


def tensor_proto(tag: str, tensor: Any) -> Summary:
    """A tensor as it is."""
    return _one(tag=tag, tensor=_tensor(make_np(tensor)), metadata=_metadata("tensor"))


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Summary:
    """The distribution of numbers; `bins`: "tensorflow", or what `numpy.histogram` takes."""
    limits = geometric_limits() if isinstance(bins, str) and bins == "tensorflow" else bins
    return _one(tag=name, histo=make_histogram(make_np(values), limits, max_bins))


def histogram_raw(name: str, min: float, max: float, num: int, sum: float, sum_squares: float,
                  bucket_limits: Any, bucket_counts: Any) -> Summary:  # fmt: skip
    """A distribution that the caller has counted."""
    counted = HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares,
        bucket_limit=list(bucket_limits), bucket=list(bucket_counts),
    )  # fmt: skip
    return _one(tag=name, histo=counted)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Summary:
    """A picture, or several in a grid."""
    pixels = pictures.as_bytes(pictures.as_hwc(make_np(tensor), dataformats))
    return _one(tag=tag, image=pictures.image(pixels, rescale))


def image_boxes(tag: str, tensor_image: Any, tensor_boxes: Any, rescale: float = 1,
                dataformats: str = "CHW", labels: list[str] | None = None) -> Summary:  # fmt: skip
    """A picture with boxes on it."""
    pixels = pictures.as_bytes(pictures.as_hwc(make_np(tensor_image), dataformats))
    return _one(tag=tag, image=pictures.image(pixels, rescale, make_np(tensor_boxes), labels))


def video(tag: str, tensor: Any, fps: float = 4) -> Summary:
    """Films (number, time, colours, height, width) as an animation."""
    return _one(tag=tag, image=pictures.film(pictures.as_bytes(make_np(tensor)), fps))


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Summary:
    """Samples of one channel between -1 and 1."""
    return _one(tag=tag, audio=pictures.sound(make_np(tensor), sample_rate))


def text(tag: str, text: str) -> Summary:
    """Words in Markdown."""
    words = TensorProto(dtype="DT_STRING", string_val=[text.encode("utf-8")],
                        tensor_shape=_shape([1]))  # fmt: skip
    return _one(tag=f"{tag}/text_summary", tensor=words, metadata=_metadata("text"))


# ---- curves of precision and recall


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127,
             weights: Any = None) -> Summary:  # fmt: skip
    """The curve of predictions between 0 and 1 of what labels say (0 or 1)."""
    num_thresholds = min(num_thresholds, 127)
    truth = make_np(labels).reshape(-1).astype(np.float64)
    scores = make_np(predictions).reshape(-1)
    weight = np.ones_like(truth) if weights is None else make_np(weights).reshape(-1)
    places = np.floor(scores * (num_thresholds - 1)).astype(np.int64)
    above = []  # weight at or above each threshold, of true and of false ones
    for wanted in (truth, 1 - truth):
        counts = np.bincount(places, wanted * weight, num_thresholds)
        above.append(counts[::-1].cumsum()[::-1])
    hits, alarms = above
    misses, passed = hits[0] - hits, alarms[0] - alarms
    precision = hits / np.maximum(LEAST, hits + alarms)
    recall = hits / np.maximum(LEAST, hits + misses)
    return _curve(tag, np.stack([hits, alarms, passed, misses, precision, recall]))


def pr_curve_raw(tag: str, tp: Any, fp: Any, tn: Any, fn: Any, precision: Any, recall: Any,
                 num_thresholds: int = 127, weights: Any = None) -> Summary:  # fmt: skip
    """A curve that the caller has counted."""
    rows = [np.asarray(make_np(row) if not isinstance(row, list) else row, np.float64)
            for row in (tp, fp, tn, fn, precision, recall)]  # fmt: skip
    return _curve(tag, np.stack(rows))


def _curve(tag: str, rows: np.ndarray) -> Summary:
    content = PrCurvePluginData(num_thresholds=rows.shape[1]).SerializeToString()
    data = _tensor(rows.astype(np.float32))
    return _one(tag=tag, tensor=data, metadata=_metadata("pr_curves", content))


# ---- meshes


def mesh(tag: str, vertices: Any, colors: Any = None, faces: Any = None,
         config_dict: dict[str, Any] | None = None) -> Summary:  # fmt: skip
    """Points in space (batch, number, 3), with colours and triangles between them."""
    given = [(MeshPluginData.VERTEX, vertices), (MeshPluginData.FACE, faces),
             (MeshPluginData.COLOR, colors)]  # fmt: skip
    parts = [(kind, make_np(values)) for kind, values in given if values is not None]
    components = mesh_metadata.get_components_bitmask([kind for kind, _ in parts])
    config = json.dumps(config_dict or {}, sort_keys=True)
    found = []
    for kind, values in parts:
        described = mesh_metadata.create_summary_metadata(
            tag, "", kind, components, values.shape, "", json_config=config
        )
        held = _tensor(values.astype(np.float32))
        name = mesh_metadata.get_instance_name(tag, kind)
        found.append(Summary.Value(tag=name, tensor=held, metadata=described))
    return Summary(value=found)


# ---- how scalars are arranged


def custom_scalars(layout: dict[str, dict[str, Any]]) -> Summary:
    """Charts by category and name: `["Multiline", tags]` or `["Margin", tags]`."""
    categories = []
    for category, charts in layout.items():
        drawn = [_chart(name, kind, tags) for name, (kind, tags, *_) in charts.items()]
        categories.append(layout_pb2.Category(title=category, chart=drawn))
    content = layout_pb2.Layout(category=categories).SerializeToString()
    held = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=_shape([]))
    return _one(tag=LAYOUT_TAG, tensor=held, metadata=_metadata("custom_scalars"))


def _chart(name: str, kind: str, tags: list[str]) -> layout_pb2.Chart:
    if kind != "Margin":
        return layout_pb2.Chart(title=name, multiline=layout_pb2.MultilineChartContent(tag=tags))
    if len(tags) != 3:
        raise AssertionError(f"Margin chart requires exactly 3 tags, got {len(tags)}.")
    value, lower, upper = tags
    series = layout_pb2.MarginChartContent.Series(value=value, lower=lower, upper=upper)
    return layout_pb2.Chart(title=name, margin=layout_pb2.MarginChartContent(series=[series]))
