"""Tests of the sources of trajectories besides the policy: replay buffers, searches, a teacher, several
heads, an average of parameters."""

import math

import gfn_rs as gfn
import numpy as np
import pytest
from refusals import INF, NAN, graph_trainer, refused, trainer, zero

GRID = gfn.HyperGrid(2, 4)


def learner(reward=gfn.HyperGridReward(), **changes):
    settings = {"batch": 64, "adam": gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 500)), **changes}
    return gfn.Trainer(
        settings.pop("env", GRID),
        reward,
        settings.pop("policy", gfn.Mlp((64, 64))),
        settings.pop("objective", None),
        **settings,
    )


@pytest.mark.parametrize(
    "changes",
    [
        dict(sources=[gfn.LocalSearch(3, rounds=2)]),
        dict(sources=[gfn.LocalSearch(3, acceptance="greedy"), gfn.Replay()]),
        dict(sources=[gfn.Teacher(gfn.Mlp((64, 64)), max_norm=1.0)]),
        dict(sources=[gfn.Thompson(0.5)], policy=gfn.Mlp((64, 64), heads=4)),
        dict(adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 500), average=gfn.Average(0.9, sampling=True))),
        dict(policy=gfn.Mlp((64, 64), weight_noise=0.1)),
        dict(sources=[gfn.Replay(500, draw="rank_prioritised")]),
        dict(sources=[gfn.Replay(500, draw="rank_prioritised", rank_by="loss", exponent=0.5)]),
        dict(sources=[gfn.Replay(500, draw="weighted_ranks", k=0.1)]),
        dict(sources=[gfn.Replay(500, draw="weighted_ranks", rank_by="loss")]),
        dict(sources=[gfn.Replay(500, draw="loss_prioritised")]),
        dict(
            sources=[
                gfn.Replay(
                    500,
                    draw=lambda log_reward, loss: 0.5 * log_reward
                    + math.log(1e-3 + (1.0 if loss is None else loss)),
                )
            ]
        ),
        dict(sources=[gfn.Replay(20, diverse=1.0, norm="l1", objects_alone=True)]),
        dict(sources=[gfn.Replay(500), gfn.Search(lambda points, rng: rng.permutation(points), every=5)]),
        dict(sources=[gfn.ChainSource(0.25, powers=(1.0, 0.5), patience=9, starts="uniform", candidates=4)]),
        dict(sources=[gfn.ChainSource(0.25, proposals="policy", max_back=6)]),
    ],
    ids=lambda changes: "+".join(changes),
)
def test_each_source_learns_the_same_distribution(changes):
    it = learner(**changes)
    plain = learner(**{name: changes[name] for name in changes if name == "policy"})
    before = it.exact().tv
    exact = it.fit(500).exact()
    assert exact.tv < 0.06 < before, (before, exact.tv)
    if list(changes) != ["policy"]:
        # The source must have an effect: the losses must differ from the losses of a trainer without the
        # source.
        assert it.history["loss"].tolist() != plain.fit(500).history["loss"].tolist()


def test_a_search_around_fresh_objects_asks_the_reward():
    it = learner(sources=[gfn.LocalSearch(2, rounds=3)]).fit(2)
    assert it.reward_calls == 2 * 64 * (1 + 3)


def test_a_teacher_draws_its_share_where_the_student_is_wrong():
    """Trains without exploration, on a reward that is high only in a corner far from the origin. With a
    teacher, the policy must learn the target. Without a teacher, it must be further from the target."""
    far = lambda points: np.where((points >= 6).all(axis=1), 4.0, -4.0)
    settings = dict(
        env=gfn.HyperGrid(2, 8),
        exploration=gfn.Exploration(epsilon=0.0),
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 800)),
    )
    alone = learner(far, **settings).fit(800).exact()
    taught = (
        learner(far, sources=[gfn.Teacher(gfn.Mlp((64, 64)), epsilon=1e-3, max_norm=1.0)], **settings)
        .fit(800)
        .exact()
    )
    assert taught.tv < 0.1
    assert alone.tv > taught.tv


def test_what_is_searched_for_goes_into_the_buffer():
    asked = []

    def corners(points, rng):
        asked.append((points.shape, rng.integers(100)))
        return np.asarray([[3, 3], [0, 3]])

    it = learner(
        sources=[gfn.Replay(1000, distinct=True), gfn.Search(corners, every=4, objects=7)],
        exploration=gfn.Exploration(epsilon=0.0),
        adam=gfn.Adam(schedule=gfn.Linear(1, 0, 500), lr=0.0, log_z_lr=0.0),
    )
    it.fit(4)
    held, calls = it.replay_len, it.reward_calls
    it.fit(1)
    assert [shape for shape, _ in asked] == [(7, 2)] and it.reward_calls == calls + 64 + 2
    it.fit(12)
    assert len(asked) == 4 and len({seed for _, seed in asked}) > 1 and it.replay_len >= held


def test_a_source_gives_a_share_of_each_batch():
    asked = []

    def corner(n, rng):
        asked.append(n)
        return np.full((n, 2), 3)

    far = lambda points: 3.0 * (points == 3).all(axis=1)
    it = learner(
        far,
        sources=[gfn.Source(corner, share=0.25), gfn.Replay(100, share=0.5)],
        exploration=gfn.Exploration(epsilon=0.0),
    )
    it.fit(2)
    assert asked == [16, 16] and it.reward_calls == 2 * 64
    assert it.fit(498).exact().tv < 0.06


def test_a_search_goes_on_bit_for_bit(tmp_path):
    search = lambda points, rng: rng.permutation(points)
    make = lambda: learner(batch=8, sources=[gfn.Replay(50, after=1), gfn.Search(search, every=2)])
    whole = make().fit(12)
    make().fit(5).save(tmp_path / "half")
    assert (
        make().resume(tmp_path / "half").fit(7).history["loss"].tolist() == whole.history["loss"].tolist()
    )


@pytest.mark.parametrize(
    "changes",
    [
        dict(sources=[gfn.Teacher(gfn.Mlp((16,)))]),
        dict(adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 500), average=gfn.Average(0.9, sampling=True))),
        dict(sources=[gfn.Thompson(0.5)], policy=gfn.Mlp((16,), heads=3)),
        dict(objective=gfn.AugmentedDetailedBalance(0.1, novelty=gfn.RandomDistillation((16,), 4))),
        dict(objective=gfn.ModifiedDetailedBalance(3)),
        dict(sources=[gfn.Data(np.asarray([[1, 2], [3, 3]]), share=0.5)]),
        dict(sources=[gfn.LocalSearch(2)]),
        dict(sources=[gfn.ChainSource(patience=2, starts="uniform", candidates=4)]),
        dict(policy=gfn.Mlp((16,), weight_noise=0.1)),
    ],
    ids=lambda changes: "+".join(changes),
)
def test_runs_with_companions_go_on_bit_for_bit(changes, tmp_path):
    make = lambda: learner(batch=8, **changes)
    whole, half = make().fit(8), make().fit(4)
    half.save(tmp_path / "half")
    assert (
        make().resume(tmp_path / "half").fit(4).history["loss"].tolist() == whole.history["loss"].tolist()
    )
    # A trainer without the settings `changes` can't resume the checkpoint. This isn't tested if `changes` has
    # a local search or a policy.
    searches = any(isinstance(source, gfn.LocalSearch) for source in changes.get("sources", ()))
    if not searches and "policy" not in changes:
        with pytest.raises((ValueError, RuntimeError)):
            learner(batch=8).resume(tmp_path / "half")


def test_other_objects_are_another_run(tmp_path):
    make = lambda *rows: learner(batch=8, sources=[gfn.Data(np.asarray(rows), share=0.5)])
    make([1, 2]).fit(2).save(tmp_path / "one")
    with pytest.raises(ValueError):
        make([2, 1]).resume(tmp_path / "one")
    assert make([1, 2]).resume(tmp_path / "one").steps_done == 2


def test_averages_are_taken_over():
    it = learner(adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 500), average=gfn.Average(0.9))).fit(60)
    plain = learner().fit(60)
    assert (it.exact().probs == plain.exact().probs).all()
    last = [tensor.clone() for tensor in it.parameters()]
    it.take_average()
    assert any((a != b).any() for a, b in zip(last, it.parameters()))
    assert 0 < np.abs(it.exact().probs - plain.exact().probs).sum() < 0.5
    refused(lambda: plain.take_average(), ValueError, "an average of the parameters")


def test_noise_is_for_training_alone():
    it = learner(policy=gfn.Mlp((64, 64), weight_noise=0.5)).fit(5)
    assert (it.exact().probs == it.exact().probs).all()
    mean = it.exact().probs
    shares = np.zeros(16)
    np.add.at(shares, it.sample(20_000) @ [4, 1], 1 / 20_000)
    assert np.abs(shares - mean[np.argsort(it.exact().states @ [4, 1])]).sum() / 2 < 0.03


def test_langevin_steps_fill_the_buffer():
    env, target = gfn.Diffusion(2, 16, sigma=5.0), gfn.MixtureTarget("nine_modes")
    settings = dict(batch=32, exploration=gfn.Exploration(epsilon=0.0))
    it = gfn.Trainer(
        env,
        target,
        gfn.DiffusionNet(),
        sources=[gfn.Replay(10_000, objects_alone=True), gfn.Mala(every=5, objects=50)],
        **settings,
    )
    plain = gfn.Trainer(
        env, target, gfn.DiffusionNet(), sources=[gfn.Replay(10_000, objects_alone=True)], **settings
    )
    # `Mala` runs 50 Markov chains of 200 steps after training step 5 and again after training step 10. Each
    # chain keeps ten points: every tenth point after its step 100. More than half of these points must be
    # added to the buffer.
    assert it.fit(11).replay_len > plain.fit(11).replay_len + 2 * 50 * 5


def test_hindsight_teaches_of_other_conditions():
    reward = lambda points, conditions: conditions[:, 0].numpy() * points[:, 0]
    few = lambda n, rng: np.full((n, 1), -1.0)
    asked = []

    def other(points, conditions, rng):
        asked.append((points.shape[1], tuple(conditions.shape[1:]), float(conditions.max())))
        return rng.uniform(-1.0, 1.0, size=tuple(conditions.shape))

    make = lambda *more: gfn.Trainer(
        gfn.HyperGrid(2, 3),
        reward,
        gfn.Mlp((64, 64)),
        conditions=gfn.Conditions(few, 1),
        sources=[gfn.Replay(1000), *more],
        batch=64,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 500)),
    )
    blind, seeing = make().fit(500), make(gfn.Hindsight(other, share=0.8)).fit(500)
    assert set(asked) == {(2, (1,), -1.0)}
    # All new trajectories are drawn under the condition -1. Only with the source `Hindsight`, which gives
    # stored objects other conditions, can the policy learn about the condition +1.
    assert seeing.exact(condition=[1.0]).tv < 0.15 < blind.exact(condition=[1.0]).tv
    assert seeing.exact(condition=[-1.0]).tv < 0.1


def test_the_conditional_grid_is_learned():
    it = gfn.Trainer(
        gfn.HyperGrid(2, 4),
        gfn.ConditionalGridReward(),
        gfn.Mlp((64, 64)),
        batch=64,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 600)),
    )
    it.fit(600)
    original = gfn.Trainer(gfn.HyperGrid(2, 4), gfn.HyperGridReward(), gfn.Mlp((8,)), batch=4).exact()
    # Under the condition c, the reward is (1 - c) * 2.6 plus c times the reward of `HyperGridReward`, whose
    # largest value is 2.6. Near c = 1 the log-rewards outside of modes change fast with c, so no c above 0.9
    # is tested.
    for c in (0.0, 0.5, 0.9):
        exact = it.exact(condition=[c])
        assert exact.log_z == pytest.approx(math.log((1 - c) * 2.6 * 16 + c * math.exp(original.log_z)))
        assert exact.tv < 0.04, (c, exact.tv)
    far = it.exact(condition=[0.0]).target - it.exact(condition=[0.9]).target
    assert np.abs(far).sum() / 2 > 0.15
    assert len(it.sample(3, conditions=[[0.0], [0.5], [1.0]])) == 3
    drawn = gfn.Trainer(
        gfn.HyperGrid(2, 4), gfn.ConditionalGridReward(), gfn.Mlp((8,)), batch=4,
        conditions=gfn.Conditions(lambda n, rng: rng.uniform(size=(n, 1)), 1),
    )
    assert drawn.fit(2).steps_done == 2


def test_the_conditional_grid_is_the_run_of_rust(reproduce):
    rust = reproduce("conditional-hypergrid", "--steps", 40, "--seed", 3)
    it = gfn.Trainer(
        gfn.HyperGrid(2, 8),
        gfn.ConditionalGridReward(),
        gfn.Mlp(backward="uniform"),
        batch=64,
        adam=gfn.Adam(lr=3e-3, schedule=gfn.Linear(1, 0, 40)),
        exploration=gfn.Exploration(epsilon=gfn.Linear(0.1, 0, 20)),
        seed=3,
    ).fit(40)
    assert it.n_parameters == rust["params"] and it.history["log_z"][-1] == rust["log_z"]
    for row in rust["conditions"]:
        assert it.exact(condition=[row["condition"]]).l1 == row["l1"]


@pytest.mark.parametrize(
    "process",
    [
        dict(),
        dict(process="ornstein_uhlenbeck", rate=0.5),
        dict(process="variance_preserving", beta_min=0.02),
    ],
)
def test_each_diffusion_learns_a_gaussian(process):
    env = gfn.Diffusion(2, 8, sigma=1.5, **process)
    it = gfn.Trainer(
        env,
        gfn.GaussianTarget([0.8, -0.4], 0.9),
        gfn.DiffusionNet(),
        batch=64,
        adam=gfn.Adam(lr=2e-3, schedule=gfn.Linear(1, 0, 400)),
    )
    before = it.evaluate(2000).elbo.mean
    sampled = it.fit(400).evaluate(4000)
    assert before < -0.5 and sampled.elbo.mean > -0.1 and sampled.log_z == pytest.approx(0.0, abs=0.05)
    assert sampled.states.mean(axis=0) == pytest.approx([0.8, -0.4], abs=0.12)


def test_learned_deviations_and_backward_steps_of_diffusions():
    policy = gfn.DiffusionNet(log_variance_range=4.0, backward_range=0.5)
    it = gfn.Trainer(
        gfn.Diffusion(2, 8),
        gfn.GaussianTarget([0.8, -0.4], 0.9),
        policy,
        batch=64,
        adam=gfn.Adam(lr=2e-3, schedule=gfn.Linear(1, 0, 400)),
    )
    assert it.n_parameters > gfn.Trainer(gfn.Diffusion(2, 8), zero, gfn.DiffusionNet(), batch=4).n_parameters
    assert it.fit(400).evaluate(4000).elbo.mean > -0.1


def library(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def test_what_was_made_of_a_file_of_fragments_keeps_it(tmp_path):
    import pickle

    path = library(tmp_path / "fragments", "c1ccccc1 0,3", "O 0")
    env = gfn.Fragments(2, path)
    make = lambda env: gfn.Trainer(env, gfn.MoleculeReward(), gfn.GraphNet(embedding=8), batch=8)
    it = make(env).fit(2)
    it.save(tmp_path / "run")
    states = it.sample(50)
    kept = pickle.dumps((env, states))
    library(path, "N 0,0", "O 0,0")
    other = gfn.Fragments(2, path)
    assert other != env == gfn.Fragments(2, library(tmp_path / "same", "c1ccccc1 0,3", "O 0")) and hash(
        env
    ) != hash(other)
    assert any("N" in smiles for smiles in make(other).sample(50).smiles) and not any(
        "N" in smiles for smiles in states.smiles
    )
    path.unlink()
    # The pickle must contain the text of the file, so that it can be loaded without the file.
    again, read = pickle.loads(kept)
    assert again == env and read.smiles == states.smiles and any("c1" in smiles for smiles in read.smiles)
    assert (
        make(again).resume(tmp_path / "run").sample(20).smiles
        == make(env).resume(tmp_path / "run").sample(20).smiles
    )
    refused(lambda: make(other).resume(tmp_path / "run"), ValueError, "description|run")
    assert pickle.loads(pickle.dumps(gfn.Fragments(3))) == gfn.Fragments(3) != gfn.Fragments(2)


def test_fragments_are_molecules():
    from rdkit import Chem

    it = gfn.Trainer(
        gfn.Fragments(3), gfn.MoleculeReward("drug_like"), gfn.GraphNet(embedding=16), batch=8
    ).fit(2)
    graphs = it.sample(20)
    assert (
        all(Chem.MolFromSmiles(smiles) is not None for smiles in graphs.smiles) and len(graphs.rdkit()) == 20
    )
    assert max(len(smiles) for smiles in graphs.smiles) > 8
    read = gfn.Trainer(
        gfn.Fragments(3),
        lambda graphs: [0.1 * len(smiles) for smiles in graphs.smiles],
        gfn.GraphNet(embedding=16),
        batch=8,
    )
    states, log_rewards = read.fit(2).sample_with_rewards(5)
    assert log_rewards == pytest.approx([0.1 * len(smiles) for smiles in states.smiles])
    assert len(it.evaluate_on(graphs, paths=2)) == 20
    refused(lambda: it.evaluate_on(["CC"]), ValueError, "expected Graphs of fragments")


def test_molecules_are_given_by_their_smiles():
    env = gfn.Molecules(3, elements=["C", "N", "O"])
    it = gfn.Trainer(
        env,
        gfn.MoleculeReward("constant"),
        gfn.GraphNet(embedding=32),
        gfn.MaximumLikelihood(),
        batch=32,
        adam=gfn.Adam(lr=3e-3),
        sources=[gfn.Data(["CCO", "CN", "CN"], share=1.0)],
    )
    exact = it.fit(200).exact()
    shares = {
        smiles: exact.probs[k]
        for k, smiles in (
            (k, exact.states[k].smiles[0]) for k in range(exact.n_states) if exact.probs[k] > 0.1
        )
    }
    assert sorted(shares.values()) == pytest.approx([1 / 3, 2 / 3], abs=0.08)


GIVEN = gfn.Data([[1, 1]])
WRONG = [
    (lambda: gfn.LocalSearch(), TypeError, "max_back"),
    (lambda: gfn.LocalSearch(2.5), TypeError, "max_back is 2.5"),
    (lambda: trainer(sources=[gfn.LocalSearch(0)]), ValueError, "max_back is 0"),
    (lambda: trainer(sources=[gfn.LocalSearch(1, 0)]), ValueError, "rounds is 0"),
    (lambda: trainer(sources=[gfn.ChainSource(rounds=0)]), ValueError, "rounds is 0"),
    (lambda: trainer(sources=[gfn.ChainSource(max_reward_calls=0)]), ValueError, "max_reward_calls is 0"),
    (lambda: trainer(sources=[3]), TypeError, "sources has 3"),
    (
        lambda: trainer(sources=[gfn.LocalSearch(1)], objective=gfn.PolicyGradient()).fit(1),
        ValueError,
        "local search",
    ),
    (lambda: gfn.Teacher(), TypeError, "policy"),
    (lambda: gfn.Teacher("Mlp"), TypeError, "policy is 'Mlp'"),
    (lambda: gfn.Teacher(gfn.Mlp), TypeError, "policy is"),
    (lambda: gfn.Teacher(gfn.Policy()), TypeError, "policy is Policy"),
    (lambda: trainer(sources=[gfn.Mlp()]), TypeError, "sources has Mlp"),
    (
        lambda: trainer(sources=[gfn.Teacher(gfn.GraphNet())]),
        TypeError,
        "GraphNet isn't a policy for vectors",
    ),
    (lambda: trainer(sources=[gfn.Teacher(gfn.Uniform())]), ValueError, "a policy with parameters"),
    (lambda: trainer(sources=[gfn.Teacher(gfn.Mlp((8,)), share=0.0)]), ValueError, "share is 0"),
    (lambda: trainer(sources=[gfn.Teacher(gfn.Mlp((8,)), epsilon=0.0)]), ValueError, "epsilon is 0"),
    (lambda: trainer(sources=[gfn.Teacher(gfn.Mlp((8,)), alpha=-1.0)]), ValueError, "alpha is -1"),
    (lambda: trainer(sources=[gfn.Teacher(gfn.Mlp((8,)), lr=-1.0)]), ValueError, "lr is -1"),
    (lambda: trainer(sources=[gfn.Thompson(0.5)]), ValueError, "heads of Thompson sampling is 1"),
    (
        lambda: trainer(gfn.BitSequence(1, 4), policy=gfn.SequenceNet(), sources=[gfn.Thompson(0.5)]),
        ValueError,
        "heads of Thompson sampling is 1",
    ),
    (
        lambda: trainer(sources=[gfn.Thompson(1.5)], policy=gfn.Mlp((8,), heads=2)),
        ValueError,
        "share of a batch that a head learns from is 1.5",
    ),
    (lambda: trainer(sources=[gfn.Thompson("half")]), TypeError, "Thompson.share is 'half'"),
    (lambda: trainer(policy=gfn.Mlp((8,), heads=0)), ValueError, "heads"),
    (lambda: trainer(policy=gfn.Mlp((8,), weight_noise=-1.0)), ValueError, "noise"),
    (lambda: gfn.Average("0.9"), TypeError, "decay is '0.9'"),
    (lambda: trainer(adam=gfn.Adam(average=gfn.Average(1.0))), ValueError, "decay"),
    (lambda: trainer(adam=gfn.Adam(average=gfn.Average(-0.1))), ValueError, "decay"),
    (lambda: trainer(adam=gfn.Adam(average=0.9)), TypeError, "average is 0.9"),
    (
        lambda: trainer(policy=gfn.Uniform(), adam=gfn.Adam(average=gfn.Average())),
        ValueError,
        "a policy with parameters",
    ),
    (lambda: gfn.Search(3), TypeError, "function is 3"),
    (lambda: gfn.Search(dict), TypeError, "function is a type"),
    (lambda: trainer(sources=[gfn.Search(lambda s, rng: s)]), ValueError, "a replay buffer"),
    (
        lambda: trainer(sources=[gfn.Search(lambda s, rng: s, every=0), gfn.Replay()]),
        ValueError,
        "between searches is 0",
    ),
    (
        lambda: trainer(sources=[gfn.Search(lambda s, rng: s, objects=0), gfn.Replay()]),
        ValueError,
        "search from is 0",
    ),
    (
        lambda: trainer(sources=[lambda s, rng: s, gfn.Replay()]),
        TypeError,
        "sources has .*expected a list of objects like",
    ),
    (lambda: trainer(sources=[gfn.Mala(), gfn.Replay()]), ValueError, "search is Mala, expected a function"),
    (
        lambda: trainer(gfn.Diffusion(2), zero, gfn.DiffusionNet(), sources=[gfn.Mala(), gfn.Replay()]),
        ValueError,
        "search is Mala",
    ),
    (
        lambda: trainer(
            gfn.Diffusion(2),
            gfn.GaussianTarget([0, 0]),
            gfn.DiffusionNet(),
            sources=[gfn.Mala(thin=0), gfn.Replay()],
        ),
        ValueError,
        "search's steps is",
    ),
    (lambda: found(lambda s, rng: None), TypeError, "the result of the search is a NoneType"),
    (lambda: found(lambda s, rng: s + 7), ValueError, "expected 0 to 2"),
    (lambda: found(lambda s, rng: s[:, :1]), ValueError, "expected .n, 2."),
    (lambda: found(lambda s, rng: 1 / 0), ZeroDivisionError, "division"),
    (lambda: found(lambda s: s), TypeError, "positional"),
    (lambda: gfn.Source([1]), TypeError, "function is .1."),
    (lambda: trainer(sources=[zero]), TypeError, "sources has"),
    (lambda: trainer(sources=[gfn.Source(zero, share=0.0)]), ValueError, "share of a source is 0"),
    (
        lambda: trainer(sources=[gfn.Source(zero, share=0.01)]).fit(1),
        ValueError,
        "at least one trajectory for each",
    ),
    (
        lambda: trainer(sources=[gfn.Source(lambda n, rng: np.zeros((n + 1, 2), int))]).fit(1),
        ValueError,
        "source's objects has shape",
    ),
    (
        lambda: trainer(sources=[gfn.Source(lambda n, rng: np.full((n, 2), 5))]).fit(1),
        ValueError,
        "entry of the result of the source is 5",
    ),
    (
        lambda: trainer(sources=[gfn.Source(lambda n, rng: None)]).fit(1),
        TypeError,
        "the result of the source is a NoneType",
    ),
    (lambda: trainer(sources=[gfn.Source(lambda n, rng: 1 / 0)]).fit(1), ZeroDivisionError, "division"),
    (lambda: trainer(sources=[gfn.Source(lambda n: 1)]).fit(1), TypeError, "positional"),
    (
        lambda: trainer(sources=[gfn.Source(corners)], objective=gfn.PolicyGradient()).fit(1),
        ValueError,
        "off-policy objective",
    ),
    (
        lambda: trainer(reward=gfn.ConditionalGridReward(), sources=[gfn.Source(corners)]),
        ValueError,
        "no Source, because its objects have no conditions",
    ),
    (lambda: trainer(sources=[[[1, 1]]]), TypeError, "sources has"),
    (lambda: trainer(sources=[gfn.Data([[1, 9]])]), ValueError, "entry of Data.objects is 9"),
    (lambda: trainer(sources=[gfn.Data([[0.5, 1.0]])]), TypeError, "array of float64"),
    (lambda: trainer(sources=[gfn.Data(np.zeros((0, 2), int))]), ValueError, "the list of objects is empty"),
    (
        lambda: trainer(gfn.SetAddition(4, 2, True), sources=[gfn.Data([[1, 0, 0, 0]])]),
        ValueError,
        "terminal state",
    ),
    (lambda: trainer(sources=[gfn.Data([[1, 1]], share=0.0)]).fit(1), ValueError, "offline share"),
    (lambda: trainer(sources=[gfn.Data([[1, 1]], share=1.5)]), ValueError, "shares of a data source|share"),
    (
        lambda: trainer(sources=[gfn.Data([[1, 1]], share=0.7), gfn.Replay(share=0.7)]),
        ValueError,
        "shares of a data source|share",
    ),
    (lambda: trainer(sources=[GIVEN, gfn.Replay(path="stored")]), ValueError, "same value for both"),
    (lambda: gfn.Data([[1, 1]], path="stored"), ValueError, "path is 'stored'"),
    (
        lambda: trainer(sources=[gfn.Data([[1, 1]], conditions=[[0.0]])]),
        ValueError,
        "conditions of given objects",
    ),
    (
        lambda: trainer(sources=[GIVEN], objective=gfn.PolicyGradient()).fit(1),
        ValueError,
        "replay and other sources",
    ),
    (
        lambda: trainer(sources=[GIVEN], objective=gfn.TrajectoryBalance("trajectory_likelihood")).fit(1),
        ValueError,
        "paths that a policy sampled",
    ),
    (lambda: graph_trainer(sources=[GIVEN]), TypeError, "expected Graphs"),
    (lambda: gfn.Replay(path="stored", objects_alone=True), ValueError, "'stored' with objects_alone"),
    (lambda: trainer(sources=[gfn.Replay(diverse=-1.0)]), ValueError, "cutoff is -1"),
    (lambda: gfn.Replay(diverse=NAN), ValueError, "diverse is nan"),
    (lambda: graph_trainer(sources=[gfn.Replay(diverse=1.0)]), ValueError, "vectors of one width"),
    (lambda: trainer(sources=[gfn.Replay(draw="weighted_ranks", k=-1.0)]), ValueError, "exponent"),
    (lambda: gfn.Replay(draw="rank_prioritised", exponent=INF), ValueError, "exponent is inf"),
    (
        lambda: gfn.Replay(draw="best"),
        ValueError,
        "draw is 'best': expected one of 'uniform'.* or a function",
    ),
    (lambda: gfn.Replay(draw=3), TypeError, "draw is 3: expected"),
    (lambda: gfn.Replay(draw=dict), TypeError, "draw is a class"),
    (lambda: drawn_by(lambda log_reward: 0.0), TypeError, "positional"),
    (lambda: drawn_by(lambda log_reward, loss: 1 / 0), ZeroDivisionError, "division"),
    (
        lambda: drawn_by(lambda log_reward, loss: "much"),
        TypeError,
        "Replay.draw gave a str: expected a number",
    ),
    (lambda: drawn_by(lambda log_reward, loss: NAN), FloatingPointError, "that a priority returns"),
    (
        lambda: drawn_by(lambda log_reward, loss: 0.0 if loss is None else NAN),
        FloatingPointError,
        "that a priority returns",
    ),
    (
        lambda: drawn_by(lambda log_reward, loss: 0.0 if loss is None else 1 / 0),
        ZeroDivisionError,
        "division",
    ),
    (lambda: gfn.FreshSource(3), TypeError, "function is 3: expected a function"),
    (lambda: trainer(sources=[corners]), TypeError, "sources has"),
    (lambda: fresh(lambda wanted: 1), TypeError, "positional"),
    (lambda: fresh(lambda wanted, rng: 1 / 0), ZeroDivisionError, "division"),
    (lambda: fresh(lambda wanted, rng: None), ValueError, "returned None.*Replay"),
    (
        lambda: fresh(lambda wanted, rng: np.zeros((wanted.max + 1, 2), int)),
        ValueError,
        "trajectories of a source has shape",
    ),
    (
        lambda: fresh(lambda wanted, rng: np.zeros((wanted.max - 1, 2), int)),
        ValueError,
        "trajectories of a source has shape",
    ),
    (
        lambda: fresh(lambda wanted, rng: np.full((wanted.max, 2), 7)),
        ValueError,
        "entry of the result of the fresh source is 7",
    ),
    (lambda: fresh(lambda wanted, rng: "far"), TypeError, "the result of the fresh source is a str"),
    (
        lambda: fresh(lambda wanted, rng: gfn.FreshObjects(np.zeros((4, 2), int), [0.0])),
        ValueError,
        "fresh source gave 1 numbers for 4",
    ),
    (
        lambda: fresh(lambda wanted, rng: gfn.FreshObjects(np.zeros((4, 2), int), [NAN] * 4)),
        FloatingPointError,
        "NaN",
    ),
    (
        lambda: fresh(lambda wanted, rng: gfn.FreshObjects(np.zeros((4, 2), int), "many")),
        TypeError,
        "fresh source gave a",
    ),
    (
        lambda: fresh(lambda wanted, rng: gfn.FreshObjects(np.zeros((4, 2), int), None, np.zeros((4, 1)))),
        ValueError,
        "gave conditions to a trainer with 0",
    ),
    (
        lambda: fresh(lambda w, rng: np.zeros((4, 2), int), objective=gfn.PolicyGradient()),
        ValueError,
        "off-policy|own trajectories",
    ),
    (
        lambda: fresh(lambda w, rng: np.zeros((4, 2), int), gfn.LocalSearch(2)),
        ValueError,
        "local search|fresh",
    ),
    (
        lambda: trainer(sources=[gfn.Replay(100), gfn.FocusInHindsight()], **RELABELLED),
        ValueError,
        "needs the conditions of a `Conditioning`",
    ),
    (lambda: gfn.Hindsight("other"), TypeError, "function is 'other'"),
    (
        lambda: trainer(sources=[gfn.Hindsight(zero), gfn.Replay()]),
        ValueError,
        "a replay buffer and conditions",
    ),
    (lambda: relabelled(lambda s, c, rng: c, share=1.5), ValueError, "share of hindsight is 1.5"),
    (lambda: relabelled(lambda s, c, rng: c[:, :0]), ValueError, "hindsight gave an array of shape"),
    (lambda: relabelled(lambda s, c, rng: "low"), TypeError, "hindsight gave a str"),
    (lambda: relabelled(lambda s, c, rng: c * NAN), ValueError, "isn't finite"),
    (lambda: relabelled(lambda s, c, rng: 1 / 0), ZeroDivisionError, "division"),
    (
        lambda: relabelled(lambda s, c, rng: c, replay=gfn.Replay(draw="loss_prioritised")),
        ValueError,
        "doesn't draw by loss",
    ),
    (
        lambda: trainer(gfn.BitSequence(1, 4), gfn.ConditionalGridReward()),
        TypeError,
        "ConditionalGridReward isn't a reward for the vectors",
    ),
    (
        lambda: trainer(
            reward=gfn.HyperGridReward(), conditions=gfn.Conditions(lambda n, rng: np.zeros((n, 1)), 1)
        ),
        ValueError,
        "or ConditionalGridReward",
    ),
    (
        lambda: trainer(
            reward=gfn.ConditionalGridReward(),
            conditions=gfn.Conditions(lambda n, rng: np.full((n, 1), 2.0), 1),
        ).fit(1),
        ValueError,
        "a condition is 2",
    ),
    (lambda: trainer(reward=gfn.ConditionalGridReward()).exact(), ValueError, "no conditions"),
    (lambda: gfn.Diffusion(2, process="vp"), ValueError, "process is 'vp'"),
    (lambda: gfn.Diffusion(2, process="ornstein_uhlenbeck", rate=0.0), ValueError, "rate is 0"),
    (
        lambda: gfn.Diffusion(2, process="variance_preserving", beta_min=0.5),
        ValueError,
        "betas is 0.5 and 0.3",
    ),
    (
        lambda: trainer(gfn.Diffusion(2), policy=gfn.DiffusionNet(backward_range=0.0)),
        ValueError,
        "backward kernel is 0",
    ),
    (
        lambda: trainer(gfn.Diffusion(2), policy=gfn.DiffusionNet(log_variance_range=-1.0)),
        ValueError,
        "log_variance_range is -1",
    ),
]


def corners(n, rng):
    return np.full((n, 2), 2)


def found(function):
    return trainer(sources=[gfn.Replay(100, after=1), gfn.Search(function, every=2)]).fit(4)


def drawn_by(function):
    return trainer(sources=[gfn.Replay(100, after=1, draw=function)]).fit(4)


def fresh(function, *more, **settings):
    return trainer(sources=[gfn.FreshSource(function), *more], **settings).fit(1)


RELABELLED = dict(
    reward=lambda points, conditions: np.zeros(len(points)),
    conditions=gfn.Conditions(lambda n, rng: np.zeros((n, 1)), 1),
)


def relabelled(function, share=1.0, replay=gfn.Replay(100, after=1)):
    return trainer(sources=[replay, gfn.Hindsight(function, share)], **RELABELLED).fit(4)


@pytest.mark.parametrize("call, kind, message", WRONG)
def test_sources_that_cannot_be(call, kind, message):
    refused(call, kind, message)


def test_a_teacher_has_a_module_of_its_own():
    from test_modules import Messages

    policy = gfn.GraphModule(Messages(), 16, 16)
    refused(
        lambda: gfn.Trainer(gfn.ColoredGraphs(3), zero, policy, sources=[gfn.Teacher(policy)]),
        ValueError,
        "a module with the same tensors as a module of the policy",
    )
