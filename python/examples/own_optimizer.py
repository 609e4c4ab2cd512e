"""Minimises the library's loss in a custom training loop, with torch's AdamW, a learning rate schedule and
clipped gradients.

python own_optimizer.py
"""

import argparse

import gfn_rs as gfn
import torch

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--steps", type=int, default=300)
arguments.add_argument("--seed", type=int, default=0)
given = arguments.parse_args()

trainer = gfn.Trainer(
    gfn.HyperGrid(2, 8),
    gfn.HyperGridReward(),
    gfn.Mlp(hidden=(128, 128)),
    gfn.TrajectoryBalance(),
    batch=64,
    exploration=gfn.Exploration(epsilon=0.1),
    seed=given.seed,
)

# The policy's parameters are torch tensors. log Z is a single number, which needs a higher learning rate than
# the weights.
network = [
    tensor for name, tensor in trainer.named_parameters() if tensor.requires_grad and "log_z" not in name
]
log_z = [tensor for name, tensor in trainer.named_parameters() if "log_z" in name]
optimizer = torch.optim.AdamW(
    [{"params": network, "lr": 3e-3}, {"params": log_z, "lr": 0.1, "weight_decay": 0.0}]
)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, given.steps)

print(f"total variation before: {trainer.exact().tv:.3f}")
for step in range(1, given.steps + 1):
    optimizer.zero_grad()
    batch = trainer.batch()
    scores = trainer.score(batch)
    loss = trainer.loss(scores)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network, 10.0)
    optimizer.step()
    schedule.step()
    trainer.advance(batch, scores)
    if step % 100 == 0:
        print(
            f"step {step}: loss {loss.item():.4f}, log Z {log_z[0].item():.3f}, total variation "
            f"{trainer.exact().tv:.3f}"
        )
exact = trainer.exact()
print(f"total variation after {given.steps} steps: {exact.tv:.3f}; the true log Z is {exact.log_z:.3f}")
