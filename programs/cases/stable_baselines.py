"""stable-baselines3: PPO, A2C, DQN and SAC for a few hundred steps of small worlds."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.evaluation import evaluate_policy


def sizes():
    return {"net_arch": [16]}  # a new one each time: models write into it


def weights(model):
    return sum(p.abs().sum().item() for p in model.policy.parameters())


ppo = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=32, n_epochs=2, seed=0, device="cpu",
          policy_kwargs=sizes())  # fmt: skip
ppo.learn(256)
print("ppo", weights(ppo), evaluate_policy(ppo, ppo.get_env(), n_eval_episodes=3))
a2c = A2C("MlpPolicy", "CartPole-v1", seed=0, device="cpu", policy_kwargs=sizes())
a2c.learn(100)
print("a2c", weights(a2c))
dqn = DQN(
    "MlpPolicy", "CartPole-v1", learning_starts=32, seed=0, device="cpu", policy_kwargs=sizes()
)
dqn.learn(128)
print("dqn", weights(dqn), dqn.exploration_rate)
sac = SAC("MlpPolicy", "Pendulum-v1", learning_starts=32, seed=0, device="cpu", batch_size=16,
          policy_kwargs=sizes())  # fmt: skip
sac.learn(64)
print("sac", weights(sac), float(sac.log_ent_coef))
seen = np.array([0.01, 0.02, 0.03, 0.04], np.float32)
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "ppo.zip")
    ppo.save(file)
    again = PPO.load(file, device="cpu")
print("kept", again.predict(seen, deterministic=True)[0], weights(again))
values = again.policy.predict_values(torch.from_numpy(seen[None]))
print("value", values.item())
