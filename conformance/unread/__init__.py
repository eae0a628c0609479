"""Parameters that are taken and then ignored.

    python -m conformance.unread                     # everything; findings by parameter
    python -m conformance.unread --only torch.cumsum # one function, with what was seen
    python -m conformance.unread --write             # the table in docs/compatibility.md

- `reading.py`: which parameters of public functions no code reads, told by `ast`;
- `bases.py`: calls that PyTorch takes, drawn from its signatures; `programs.py`: calls written by
  hand, for what can't be drawn; `candidates.py`: values that a parameter is given, one by one;
- `effects.py`: where PyTorch's answer depends on a parameter and ours does not;
- `reasons.py`: the parameters that may be without effect, each with the reason.
"""
