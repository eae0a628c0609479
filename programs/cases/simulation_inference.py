"""sbi: posteriors from simulations: estimated, of likelihoods and of ratios, and their samples."""

import torch
from sbi.analysis import conditional_corrcoeff
from sbi.inference import MCABC, NLE, NPE, NRE
from sbi.neural_nets import posterior_nn
from sbi.utils import BoxUniform

torch.manual_seed(0)
prior = BoxUniform(-2 * torch.ones(2), 2 * torch.ones(2))
theta = prior.sample((120,))
x = theta + 0.3 * torch.randn_like(theta)
seen = torch.tensor([[0.4, -0.3]])
print("prior", theta.sum().item(), prior.log_prob(theta[:2]).tolist())
for kind in ("mdn", "maf"):
    torch.manual_seed(1)
    inference = NPE(
        prior, density_estimator=posterior_nn(kind, hidden_features=8, num_transforms=2)
    )
    inference.append_simulations(theta, x)
    inference.train(training_batch_size=20, max_num_epochs=3)
    posterior = inference.build_posterior()
    print(kind, [float(v) for v in inference.summary["training_loss"]])
    print(kind, posterior.log_prob(theta[:3], x=seen).tolist())
    samples = posterior.sample((5,), x=seen, show_progress_bars=False)
    print(kind, "samples", samples.flatten().tolist())
torch.manual_seed(1)
ratios = NRE(prior, classifier="mlp")
ratios.append_simulations(theta, x)
ratios.train(training_batch_size=20, max_num_epochs=2)
print("nre", [float(v) for v in ratios.summary["training_loss"]])
posterior = ratios.build_posterior(sample_with="rejection")
print("nre", posterior.sample((3,), x=seen, show_progress_bars=False).flatten().tolist())
torch.manual_seed(1)
likelihood = NLE(prior, density_estimator="mdn")
likelihood.append_simulations(theta, x)
likelihood.train(training_batch_size=20, max_num_epochs=2)
posterior = likelihood.build_posterior(
    mcmc_method="slice_np", mcmc_parameters={"num_chains": 1, "warmup_steps": 3, "thin": 1}
)
print("nle", posterior.potential(theta[:2], x=seen).tolist())
print(
    "corr",
    conditional_corrcoeff(
        torch.distributions.MultivariateNormal(
            torch.zeros(2), torch.tensor([[1.0, 0.5], [0.5, 1.0]])
        ),
        torch.tensor([[-2.0, 2.0]] * 2),
        torch.zeros(1, 2),
    )
    .flatten()
    .tolist(),
)
simulate = MCABC(lambda t: t + 0.3 * torch.randn_like(t), prior)
print("abc", simulate(seen, num_simulations=50, eps=None, quantile=0.1).sum().item())
