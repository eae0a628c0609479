"""`torch.fft`: Fourier transforms, made from their rows when first used."""

from flambeau._ops.table.lookup import names_of

__getattr__, __dir__ = names_of("fft")
