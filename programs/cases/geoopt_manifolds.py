"""geoopt: optimisation on manifolds."""

import geoopt
import torch

torch.manual_seed(0)
ball = geoopt.PoincareBall(c=1.0)
p = geoopt.ManifoldParameter(torch.randn(4, 3) * 0.2, manifold=ball)
target = ball.expmap0(torch.randn(4, 3) * 0.3)
for opt in (
    geoopt.optim.RiemannianAdam([p], lr=0.05),
    geoopt.optim.RiemannianSGD([p], lr=0.05, momentum=0.9),
):
    for _ in range(4):
        opt.zero_grad()
        loss = ball.dist2(p, target).sum()
        loss.backward()
        opt.step()
    print(type(opt).__name__, loss.item(), p.tolist())
st = geoopt.Stiefel()
q = geoopt.ManifoldParameter(st.random(5, 2), manifold=st)
a = torch.randn(5, 5)
a = a + a.T
opt = geoopt.optim.RiemannianAdam([q], lr=0.1)
for _ in range(5):
    opt.zero_grad()
    loss = -(q.T @ a @ q).trace()
    loss.backward()
    opt.step()
    print("stiefel", loss.item())
print(
    (q.T @ q).detach().sub(torch.eye(2)).abs().max().item() < 1e-4,
    geoopt.Sphere().random(3, 4).norm(dim=-1).tolist(),
)
spd = geoopt.SymmetricPositiveDefinite()
m, n = spd.random(3, 3), spd.random(3, 3)
print("spd", spd.dist(m, n).item())
lor = geoopt.Lorentz()
print("lorentz", lor.dist(lor.random_normal(3, 4), lor.random_normal(3, 4)).tolist())
