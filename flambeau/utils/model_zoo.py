"""`torch.utils.model_zoo`: an older name of what `torch.hub` loads."""

from flambeau.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
