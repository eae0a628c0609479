"""skorch and ignite: a small classifier each."""

import numpy as np
import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy, Loss
from skorch import NeuralNetClassifier
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(60, 6), torch.randint(0, 3, (60,))


def net():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))


class Probabilities(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, x):
        return self.net(x).softmax(-1)


fitted = NeuralNetClassifier(Probabilities, max_epochs=4, lr=0.3, verbose=0, train_split=None)
fitted.fit(x.numpy(), y.numpy().astype(np.int64))
print("skorch", fitted.history[:, "train_loss"], fitted.predict(x.numpy()).tolist())

model = net()
criterion = torch.nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), lr=0.2), criterion)
judge = create_supervised_evaluator(model, {"accuracy": Accuracy(), "loss": Loss(criterion)})
loader = DataLoader(TensorDataset(x, y), batch_size=20)


@trainer.on(Events.EPOCH_COMPLETED)
def report(engine):
    judge.run(loader)
    print("ignite", engine.state.output, judge.state.metrics)


trainer.run(loader, max_epochs=3)
