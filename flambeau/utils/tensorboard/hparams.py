"""Hyperparameters of a run, and what it came to."""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams.plugin_data_pb2 import (
    HParamsPluginData,
    SessionEndInfo,
    SessionStartInfo,
)

from flambeau._tensor.tensor import Tensor

NUMBER, TEXT = api_pb2.DATA_TYPE_FLOAT64, api_pb2.DATA_TYPE_STRING


def hparams(hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
            hparam_domain_discrete: dict[str, list[Any]] | None = None
            ) -> tuple[Summary, Summary, Summary]:  # fmt: skip
    """What may vary and is measured, the values of this run, and that it is over.

    Raises:
        TypeError: it is not told by dicts.
        ValueError: a value is neither a number, nor text, nor a tensor of one number.
    """
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    domains = hparam_domain_discrete or {}
    start, infos = SessionStartInfo(), []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        kind, held = _held(value)
        setattr(start.hparams[name], "string_value" if kind == TEXT else "number_value", held)
        info = api_pb2.HParamInfo(name=name, type=kind)
        for choice in domains.get(name, ()):
            field = "string_value" if kind == TEXT else "number_value"
            setattr(info.domain_discrete.values.add(), field, choice)
        infos.append(info)
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in metric_dict]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
    return (
        _entry("experiment", experiment=experiment),
        _entry("session_start_info", session_start_info=start),
        _entry("session_end_info", session_end_info=SessionEndInfo(status="STATUS_SUCCESS")),
    )


def _held(value: Any) -> tuple[Any, Any]:
    if isinstance(value, str):
        return TEXT, value
    if isinstance(value, Tensor) and value.numel() == 1:  # type: ignore[attr-defined]
        return NUMBER, value.item()  # type: ignore[attr-defined]
    if isinstance(value, (bool, int, float)):
        return NUMBER, float(value)
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def _entry(name: str, **content: Any) -> Summary:
    held = HParamsPluginData(**content).SerializeToString()
    data = SummaryMetadata.PluginData(plugin_name="hparams", content=held)
    metadata = SummaryMetadata(plugin_data=data)
    return Summary(value=[Summary.Value(tag=f"_hparams_/{name}", metadata=metadata)])
