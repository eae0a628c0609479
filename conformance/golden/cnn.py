"""A convolutional network with batch norm and dropout over noisy pictures; SGD with momentum."""


def run(torch, steps=100):
    """The losses of so many steps, by the `torch` that is given."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, channels, out_channels, stride):
            super().__init__()
            self.conv = nn.Conv2d(channels, out_channels, 3, stride, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(out_channels)
            self.skip = nn.Conv2d(channels, out_channels, 1, stride)

        def forward(self, x):
            return F.relu(self.norm(self.conv(x)) + self.skip(x))

    torch.manual_seed(2)
    prototypes = torch.randn(10, 3, 16, 16)
    labels = torch.randint(0, 10, (256,))
    pictures = prototypes[labels] + 1.5 * torch.randn(256, 3, 16, 16)
    model = nn.Sequential(
        Block(3, 8, 1),
        Block(8, 16, 2),
        nn.MaxPool2d(2),
        nn.Dropout2d(0.1),
        Block(16, 16, 1),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(64, 10),
    )
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4, nesterov=True
    )
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=40, gamma=0.5)
    losses = []
    for step in range(steps):
        batch = slice(step % 8 * 32, step % 8 * 32 + 32)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pictures[batch]), labels[batch], label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses
