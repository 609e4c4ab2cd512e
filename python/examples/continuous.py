"""Trains on points instead of graphs: on a box with high rewards near its four corners, and on a diffusion
whose target is a Gaussian.

python continuous.py
"""

import argparse

import gfn_rs as gfn
import numpy as np

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--steps", type=int, default=1000)
arguments.add_argument("--samples", type=int, default=2000)
arguments.add_argument("--seed", type=int, default=0)
given = arguments.parse_args()
settings = {"batch": 64, "seed": given.seed}
falling = gfn.Linear(1, 0, given.steps)

box = gfn.Trainer(
    gfn.Box(ndim=2, delta=0.25),
    gfn.BoxReward(),
    gfn.BoxNet((128, 128), components=8),
    # Densities have no upper bound, so gradients can be large. Therefore gradients are clipped.
    adam=gfn.Adam(lr=3e-3, log_z_lr=1e-2, schedule=falling, max_norm=10.0),
    exploration=gfn.Exploration(epsilon=gfn.Linear(0.1, 0, max(given.steps // 2, 1))),
    **settings,
)


def near_corners():
    """Returns the share of sampled points near the corners, with |x - 1/2| above 0.25 on both axes."""
    return (np.abs(box.sample(given.samples) - 0.5) > 0.25).all(axis=1).mean()


before = near_corners()
box.fit(given.steps)
print(
    f"box: {before:.2f} of the samples in the corners before, {near_corners():.2f} after; log Z "
    f"{box.history['log_z'][-1]:.3f}"
)

# During training, noise is added to the steps, so that samples also reach points that the policy alone
# doesn't reach yet. The target is normalised, so the true log Z is 0.
mean, sd = [1.0, -1.0], 0.5
diffusion = gfn.Trainer(
    gfn.Diffusion(dim=2, steps=20, sigma=1.0),
    gfn.GaussianTarget(mean, sd),
    gfn.DiffusionNet(),
    adam=gfn.Adam(lr=1e-3, schedule=falling),
    exploration=gfn.Exploration(noise=gfn.Linear(0.5, 0, max(given.steps // 2, 1))),
    **settings,
)
diffusion.fit(given.steps)
points = diffusion.sample(given.samples)
print(f"diffusion: log Z {diffusion.history['log_z'][-1]:.3f} (true: 0); {given.samples} samples have")
print(
    f"  mean {points.mean(axis=0).round(2).tolist()} (true: {mean}), standard deviation "
    f"{points.std(axis=0).round(2).tolist()} (true: {sd})"
)
