"""Functions of torch as programs use them; each gets a tensor of 4 by 4."""

# ruff: noqa

from typing import List, Tuple

import torch
import torch.nn.functional as F


def autocast_region(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return torch.mm(x, x)


def labelled(x):
    with torch.profiler.record_function("a"):
        y = x * 2
    return y


def labelled_with_arguments(x):
    with torch.autograd.profiler.record_function("a", "b"):
        y = x * 2
    return y


def tracing(x):
    if torch.jit.is_tracing():
        return x
    return x * 2


def scripting(x):
    if torch.jit.is_scripting():
        return x
    return x * 2


def rev2(x):
    r = [1, 2]
    r.reverse()
    return r


def asserted(x):
    torch._assert(x.sum() < 100, "big")
    return x


def asserted2(x):
    torch._assert(x.dim() == 2, "dims")
    return x


def unique(x):
    return torch.unique(x)


def unique_with_inverse(x):
    return torch.unique(x, return_inverse=True)


def unique_rows(x):
    return torch.unique(x, sorted=True, return_inverse=True, return_counts=True, dim=0)


def unique_consecutive(x):
    return torch.unique_consecutive(x, return_counts=True)


def norm(x):
    return torch.norm(x)


def norm_of_rows(x):
    return torch.norm(x, p=2.0, dim=1)


def norm_over_dims(x):
    return torch.norm(x, p=1, dim=[0, 1], keepdim=True)


def norm_by_name(x):
    return torch.norm(x, p="fro")


def norm_method(x):
    return x.norm(p=2, dim=1, keepdim=True)


def norm_method_alone(x):
    return x.norm()


def tensordot_number(x):
    return torch.tensordot(x, x, dims=1)


def tensordot_tuple(x):
    return torch.tensordot(x, x, dims=([1], [0]))


def tensordot_lists(x):
    return torch.tensordot(x, x, dims=[[1], [0]])


def split_size(x):
    return torch.split(x, 2)


def split_sizes(x):
    return torch.split(x, [1, 3], dim=1)


def split_method(x):
    return x.split(2, dim=1)


def split_method_sizes(x):
    return x.split([1, 3], 0)


def meshgrid(x):
    return torch.meshgrid(x[0], x[1])


def meshgrid_list(x):
    return torch.meshgrid([x[0], x[1]], indexing="xy")


def stft(x):
    return torch.view_as_real(torch.stft(x.flatten(), 4, return_complex=True))


def stft_window(x):
    return torch.stft(
        x.flatten(),
        n_fft=4,
        hop_length=2,
        window=torch.hann_window(4),
        center=False,
        return_complex=False,
    )


def istft(x):
    return torch.istft(
        torch.stft(x.flatten(), 4, window=torch.ones(4), return_complex=True),
        4,
        window=torch.ones(4),
    )


def cdist(x):
    return torch.cdist(x, x)


def cdist_mode(x):
    return torch.cdist(x, x, p=1.0, compute_mode="donot_use_mm_for_euclid_dist")


def atleast_1d(x):
    return torch.atleast_1d(x)


def atleast_2d(x):
    return torch.atleast_2d([x, x])


def atleast_3d(x):
    return torch.atleast_3d(x)


def block_diag(x):
    return torch.block_diag(x, x)


def block_diag_list(x):
    return torch.block_diag([x, x])


def cartesian_prod(x):
    return torch.cartesian_prod(x[0], x[1])


def cartesian_prod_list(x):
    return torch.cartesian_prod([x[0], x[1]])


def chain_matmul(x):
    return torch.chain_matmul(x, x, x)


def multi_dot(x):
    return torch.linalg.multi_dot([x, x, x])


def lu(x):
    return torch.lu(x)


def lu_with_infos(x):
    return torch.lu(x, get_infos=True)


def lu_unpack(x):
    a, b = torch.linalg.lu_factor(x)
    return torch.lu_unpack(a, b)


def broadcast_tensors(x):
    return torch.broadcast_tensors(x, x[0])


def broadcast_tensors_list(x):
    return torch.broadcast_tensors([x, x[0]])


def einsum(x):
    return torch.einsum("ij,jk->ik", x, x)


def einsum_list(x):
    return torch.einsum("ij,jk->ik", [x, x])


def relu6(x):
    return F.relu6(x, inplace=True)


def random_integers(x):
    return x.clone().random_().shape


def exponential(x):
    return x.clone().exponential_().shape


def cauchy(x):
    return x.clone().cauchy_().shape


def geometric(x):
    return x.clone().geometric_(0.5).shape


def log_normal(x):
    return x.clone().log_normal_().shape


def normal(x):
    return x.clone().normal_(0.0, 1.0).shape


def uniform(x):
    return x.clone().uniform_(0.0, 1.0).shape


def bernoulli(x):
    return x.clone().bernoulli_(0.5).shape


def multinomial(x):
    return torch.multinomial(torch.softmax(x, -1), 2).shape


def randperm(x):
    return torch.randperm(5).shape


def random_factories(x):
    return (
        torch.rand(2, 3).shape,
        torch.randn([2, 3]).shape,
        torch.randint(5, (2,)).shape,
        torch.randint(0, 5, [2]).shape,
        torch.rand_like(x).shape,
        torch.randn_like(x).shape,
        torch.randint_like(x, 3).shape,
    )


def random_below(x):
    return x.clone().random_(5).shape


def random_between(x):
    return x.clone().random_(0, 5).shape


def _aa(x, y: int):
    return x * y, x + y


def forks_in_a_loop(x):
    fs = torch.jit.annotate(List[torch.jit.Future[Tuple[torch.Tensor, torch.Tensor]]], [])
    for i in range(3):
        fs.append(torch.jit.fork(_aa, x, i))
    out = []
    for f in fs:
        out.append(torch.jit.wait(f)[0])
    return torch.stack(out)


def _inner(x):
    return torch.jit.wait(torch.jit.fork(_one, x))


def _one(x):
    return x + 1


def forks_in_forks(x):
    return torch.jit.wait(torch.jit.fork(_inner, x))


def loops(x):
    for i, (a, b) in enumerate(zip([1, 2], x)):
        x = x + i * a * b.sum()
    return x


def python_builtins(x):
    l = [3, 1, 2]
    return (
        sorted(l),
        sorted(["b", "a"]),
        max(l),
        min(l),
        sum(l),
        any([True]),
        all([False]),
        abs(-2),
        round(2.5),
        divmod(7, 2),
    )


def strings(x):
    return (
        "a,b".split(","),
        "x".join(["a", "b"]),
        "AbC".lower(),
        " a ".strip(),
        "abc".find("c"),
        f"{1}-{'z'}",
        "%d" % 3,
        "a" in "abc",
        str(3),
        ord("a"),
        chr(97),
        hex(10),
        bin(5),
        oct(9),
    )


def tensor_literals(x):
    return torch.tensor([1.0, 2.0]), torch.tensor([[1, 2]]), torch.as_tensor(3), torch.tensor(True)


def number_texts(x):
    return float("inf"), -float("inf"), float("3.5"), int("7"), bool(0)


def indexing(x):
    return x[..., 0], x[:, None], x[x > 0], x[[0, 1]], x[0:2, -1]


def assignment(x):
    y = x.clone()
    y[0] = 1
    y[:, 1] = x[:, 0]
    y[y > 0] += 2.0
    return y


def mixed(x):
    return (
        torch.where(x > 0, x, 0.0),
        torch.clamp(x, min=0),
        x.clamp_(max=1),
        torch.cat([x, x], 1),
        torch.stack((x, x)),
        x.T,
        x.mT,
        x.numel(),
        x.is_cuda,
        x.requires_grad,
        x.shape[0],
        x.ndim,
    )


def linalg(x):
    return (
        torch.linalg.norm(x),
        torch.linalg.det(x),
        torch.linalg.inv(x + 10 * torch.eye(4)),
        torch.linalg.vector_norm(x, dim=1),
        torch.linalg.svdvals(x),
        torch.linalg.qr(x),
    )


def ffts(x):
    return (
        torch.view_as_real(torch.fft.rfft(x)),
        torch.fft.irfft(torch.fft.rfft(x)),
        torch.fft.fftfreq(4),
    )


def interpolate_and_pad(x):
    return (
        F.interpolate(x[None, None], scale_factor=2.0, mode="bilinear", align_corners=False),
        F.pad(x, [1, 1]),
        F.pad(x[None], (1, 1), "reflect"),
        F.grid_sample(x[None, None], torch.zeros(1, 2, 2, 2), align_corners=False),
    )


def losses(x):
    return (
        F.mse_loss(x, x * 2),
        F.cross_entropy(x, torch.tensor([0, 1, 2, 3])),
        F.binary_cross_entropy_with_logits(x, torch.sigmoid(x)),
        F.smooth_l1_loss(x, x * 2),
        F.kl_div(F.log_softmax(x, 1), F.softmax(x, 1), reduction="batchmean"),
    )


def named_results(x):
    return (
        x.topk(2),
        x.sort(dim=1),
        x.max(1),
        x.min(dim=0, keepdim=True),
        torch.median(x, 1),
        torch.mode(x, 1),
        torch.kthvalue(x, 2),
        torch.cummax(x, 1),
    )


def fields_of_results(x):
    r = x.topk(2)
    return r.values, r.indices, r[0]


def scatter(x):
    return (
        torch.zeros(4, 4).scatter_(1, torch.tensor([[0, 1]]), x),
        x.gather(1, torch.tensor([[0], [1]])),
        x.index_select(0, torch.tensor([0])),
        torch.zeros(4, 4).index_add(0, torch.tensor([0, 1, 2, 3]), x),
        torch.zeros(4, 4).scatter_add(0, torch.zeros(4, 4, dtype=torch.long), x),
        torch.zeros(4, 4).index_put_((torch.tensor([0]), torch.tensor([1])), x[0, 0]),
    )


def embedding(x):
    return (
        F.embedding(torch.tensor([0, 1]), x),
        F.one_hot(torch.tensor([0, 2])),
        F.embedding_bag(torch.tensor([0, 1]), x, torch.tensor([0])),
    )


def attention(x):
    return F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None])


def buckets(x):
    return (
        torch.bucketize(x, torch.tensor([0.0, 1.0])),
        torch.searchsorted(torch.tensor([0.0, 1.0]), x),
        torch.histc(x, 4),
        torch.bincount(torch.tensor([0, 1, 1])),
    )


def shapes(x):
    return (
        x.roll(1, 0),
        x.flip(0),
        x.rot90(),
        x.tril(),
        x.triu(1),
        x.diag(),
        x.repeat(2, 2),
        x.expand(2, 4, 4),
        x.unfold(0, 2, 1),
        x.chunk(2),
        x.unbind(0),
        x.view(-1),
        x.reshape(2, 8),
        x.permute(1, 0),
        x.t(),
        x.transpose(0, 1),
        x.squeeze(),
        x.unsqueeze(0),
        x.movedim(0, 1),
        torch.narrow(x, 0, 0, 1),
    )


def statistics(x):
    return (
        torch.quantile(x, 0.5),
        torch.std(x),
        torch.var(x, dim=1, unbiased=False),
        torch.std_mean(x),
        torch.var_mean(x, 1),
        torch.cov(x),
        torch.corrcoef(x),
        x.cumsum(0),
        x.cumprod(1),
        x.prod(),
        x.logsumexp(1),
        x.nansum(),
    )


def truth(x):
    return (
        x.nonzero(),
        torch.where(x > 0),
        (x > 0).any(),
        (x > 0).all(1),
        torch.isnan(x),
        torch.isfinite(x),
        torch.allclose(x, x),
        torch.equal(x, x),
        x.isclose(x),
    )


def lists(x):
    a = [1, 2, 3]
    a.extend([4])
    a.insert(0, 9)
    a.pop()
    a.remove(2)
    b = a.copy()
    b.clear()
    return a, len(a), a.index(3), a.count(1), a + [7], a * 2, a[-1], a[::2], 3 in a


def dictionaries(x):
    d = {"a": x, "b": x * 2}
    d["c"] = x
    k = list(d.keys())
    v = list(d.values())
    d.pop("a")
    e = d.get("z")
    del d["b"]
    return k, v, len(d), "c" in d, e, d.setdefault("q", x)


def tolist(x):
    l: List[List[float]] = x.tolist()
    return l, x[0, 0].item(), float(x[0, 0]), int(x[0, 0])


def getattr_(x):
    return getattr(x, "dtype") == torch.float32


def comprehensions(x):
    return [i for i in range(3)], [i * 2 for i in [1, 2]], {i: i * 2 for i in range(3)}


def clamps(x):
    return (
        torch.clamp(x, -1, 1),
        torch.clip(x, 0.0, 0.5),
        x.clamp_min(0),
        torch.lerp(x, x, 0.5),
        torch.addcmul(x, x, x, value=0.5),
        torch.addmm(x, x, x),
        torch.baddbmm(x[None], x[None], x[None]),
    )


def factories(x):
    return (
        x.new_zeros(2, 2),
        x.new_full([2], 3.0),
        x.new_ones((2,)),
        x.new_empty(0),
        torch.zeros_like(x),
        torch.full([2], 1.5),
        torch.full((2,), 1),
        torch.arange(3),
        torch.arange(0, 1, 0.25),
        torch.linspace(0, 1, 3),
        torch.eye(2),
        torch.logspace(0, 1, 2),
        torch.empty_like(x).shape,
        torch.tril_indices(3, 3),
    )


def windows(x):
    return (
        torch.hann_window(4),
        torch.hamming_window(4),
        torch.blackman_window(4),
        torch.kaiser_window(4),
        torch.bartlett_window(4),
    )


def bitwise(x):
    return (
        x.bitwise_not() if x.dtype == torch.int64 else x,
        torch.tensor([5]) & 3,
        torch.tensor([5]) << 1,
        torch.logical_not(x > 0),
        (x > 0) ^ (x < 1),
        torch.tensor([5]) // 2,
        torch.fmod(x, 2),
        torch.remainder(x, 2),
        torch.floor_divide(x, 2),
        torch.div(x, 2, rounding_mode="floor"),
    )
