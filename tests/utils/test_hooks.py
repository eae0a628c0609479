"""`torch.utils.hooks`."""

import flambeau as torch
from flambeau.utils.hooks import RemovableHandle, unserializable_hook


def test_handles_are_of_the_public_class():
    handle = torch.ones(1, requires_grad=True).register_hook(print)
    assert type(handle) is RemovableHandle


def test_the_mark_is_on_the_hook_itself():
    def hook(grad):
        return grad

    assert unserializable_hook(hook) is hook
    assert hook.__torch_unserializable__
