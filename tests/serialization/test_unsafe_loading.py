"""`weights_only=False`, and what the environment says about it."""

import io
import pickle
import types
from collections import OrderedDict

import numpy as np
import pytest

from flambeau import serialization
from flambeau._core.layout import channels_last
from flambeau._tensor.tensor import wrap
from flambeau.serialization import load
from tests.serialization.checkpoints import FORMATS, archive_of, saved


class Settings:
    def __init__(self):
        self.rate = 0.1
        self.weight = wrap(np.ones(2, np.float32))


@pytest.mark.parametrize("zip_format", FORMATS)
def test_any_object_with_the_users_word(zip_format):
    content = saved(Settings(), _use_new_zipfile_serialization=zip_format)
    with pytest.raises(pickle.UnpicklingError, match="^Weights only load failed. This file can"):
        load(io.BytesIO(content))
    found = load(io.BytesIO(content), weights_only=False)
    assert found.rate == 0.1
    assert found.weight._data.tolist() == [1, 1]


def test_memory_formats():
    content = saved([channels_last])
    assert load(io.BytesIO(content), weights_only=False) == [channels_last]


def test_names_that_flambeau_lacks():
    content = archive_of(b"\x80\x02ctorch.nn.quantized\nLinear\n.", {})
    with pytest.raises(AttributeError, match="Can't get attribute 'Linear'"):
        load(content, weights_only=False)


def test_environment_variables(monkeypatch):
    content = saved(Settings())
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected"):
        load(io.BytesIO(content))
    with pytest.raises(pickle.UnpicklingError):
        load(io.BytesIO(content), weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        load(io.BytesIO(content))
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        load(io.BytesIO(content), weights_only=False)


def test_pickle_module():
    content = saved([1])
    assert load(io.BytesIO(content), pickle_module=pickle) == [1]
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        load(io.BytesIO(content), pickle_module=pickle, weights_only=True)
    with pytest.warns(UserWarning, match="pickle_load_args only works"):
        load(io.BytesIO(content), encoding="latin1")


def test_inspection_of_globals():
    for protocol in (2, 4):
        content = saved([Settings(), OrderedDict(), {1}], pickle_protocol=protocol)
        found = serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(content))
        assert f"{__name__}.Settings" in found
        assert "collections.OrderedDict" not in found
        assert "torch._utils._rebuild_tensor_v2" not in found
    with pytest.raises(ValueError, match="Expected input to be a checkpoint"):
        serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"abc"))


def test_versions_of_modules():
    module = types.SimpleNamespace(__name__="m", __version__="1.12.0b1")
    check = serialization.check_module_version_greater_or_equal
    assert check(module, (1, 9))
    assert not check(module, (1, 13))
    with pytest.raises(RuntimeError, match="'m' module version string is malformed '1.12.0b1'"):
        check(module, (1, 12, 0))
    with pytest.warns(UserWarning, match="continuing assuming that requirement is met"):
        assert check(module, (1, 12, 0), error_if_malformed=False)
