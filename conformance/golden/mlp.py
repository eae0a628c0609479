"""A perceptron with dropout that classifies points by the ring they lie in; Adam."""


def run(torch, steps=100):
    """The losses of so many steps, by the `torch` that is given."""
    nn = torch.nn
    torch.manual_seed(1)
    points = torch.randn(512, 8)
    labels = (points.square().sum(1) / 4).long().clamp(max=3)
    model = nn.Sequential(
        nn.Linear(8, 64),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(64, 64),
        nn.LayerNorm(64),
        nn.GELU(),
        nn.Linear(64, 4),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        batch = torch.randperm(len(points))[:128]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(points[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
