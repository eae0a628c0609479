"""`torch.autograd.anomaly_mode`: where a gradient became NaN, under PyTorch's name of the file."""

from flambeau.autograd.saved import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
