"""Statements about memory: storages and what is written through them, groups that are copied."""

from __future__ import annotations

from conformance.jit.generated.expressions import Refused

from .drawing import Drawing

STORAGES = (
    "{x}.untyped_storage().fill_(0)",
    "{x}.untyped_storage()[{byte}] = {value}",
    "{x}.untyped_storage().copy_({same}.untyped_storage())",
    "{x}.untyped_storage().resize_({x}.untyped_storage().nbytes())",
    "{n} = torch.empty(0, dtype={x}.dtype).set_({x}.untyped_storage())",
    "{n} = torch.empty(0, dtype={x}.dtype).set_({x}.untyped_storage(), 0, {x}.shape)",
    "{n} = torch.empty(0, dtype={x}.dtype).set_({x}.untyped_storage(), {x}.storage_offset(), "
    "{x}.shape, {x}.stride())",
    "{n} = torch.empty(0, dtype={x}.dtype).set_({x}.untyped_storage().clone())",
    "{n} = torch.empty(0, dtype={x}.dtype).set_(copy.deepcopy({x}.untyped_storage()))",
    "{n} = torch.empty(0, dtype={x}.dtype).set_({x}.detach())",
    "{whole}.set_({x}.untyped_storage(), 0, (1,))", "{whole}.set_({x})", "{whole}.set_()",
    "{n} = {whole}.set_({x}.detach(), 0, (1, 1), (1, 1))",
    "with torch.no_grad():\n    {whole}.set_({x})",
    "{whole}.data = {x}.data[:1]", "{x}.detach().resize_(1)", "{x}.detach().resize_as_({x}[:1])",
    "note({x}.untyped_storage().nbytes(), {x}.storage_offset())",
    "note({x}.untyped_storage().data_ptr() == {y}.untyped_storage().data_ptr())",
    "note(len({x}.untyped_storage()))",
    "note({x}.is_set_to({y}), len({x}.untyped_storage().tolist()))",
    "{n} = torch.frombuffer(bytearray({x}.untyped_storage().tolist()), dtype={x}.dtype)",
)  # fmt: skip
WAYS = ("copy.deepcopy({})", "copy.deepcopy({})", "pickled({})", "stored({})", "copy.copy({})")
PAIRS = (
    "{n}, {m} = {way}", "{n}, {m} = {way}", "{n}, {m} = {way}\n{n}.detach().mul_(2)",
    "{n}, {m} = {way}\nnote({n}.untyped_storage().data_ptr() == {m}.untyped_storage().data_ptr())",
)  # fmt: skip
GROUPS = (
    "[{x}, {y}]", "({x}, {x})", "[{x}, {x}.detach()]", "[{x}.detach(), {x}.detach()[:1]]",
    "({x}.detach().T, {x}.data)", "[{leaf}, {leaf}.grad]", "[{leaf}, {leaf}.data.view(-1)]",
    "[{x}.detach(), {y}.detach()]", "[torch.nn.Parameter({x}), {x}.detach()]",
)  # fmt: skip


def storage(p: Drawing) -> str:
    """What goes past the tensors to their memory."""
    form = p.random.choice(STORAGES)
    x = p.tensor(lambda value: value.numel() > 0)
    words = {"x": x, "y": p.tensor(), "byte": p.random.randrange(8),
             "value": p.random.choice((0, 1, 63, 64))}  # fmt: skip
    if "{same}" in form:
        words["same"] = _as_large(p, x)
    if "{whole}" in form:
        words["whole"] = p.tensor(lambda value: not value._is_view())
    if "{n}" in form:
        words["n"] = p.new_name()
    return form.format(**words)


def _as_large(p: Drawing, name: str) -> str:
    size = p.env[name].untyped_storage().nbytes()
    return p.tensor(lambda value: value.untyped_storage().nbytes() == size)


def group(p: Drawing) -> str:
    """Two tensors, of one memory or of two, copied together."""
    form = p.random.choice(GROUPS)
    words = {"x": p.tensor(), "y": p.tensor()}
    if "{leaf}" in form:
        words["leaf"] = p.leaf()
    way = p.random.choice(WAYS).format(form.format(**words))
    if ".grad]" in form and p.env[words["leaf"]].grad is None:
        raise Refused("no gradient")
    return p.random.choice(PAIRS).format(n=p.new_name(), m=p.new_name(), way=way)
