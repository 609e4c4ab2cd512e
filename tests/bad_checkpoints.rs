//! Tests of damaged, incomplete, forged and foreign checkpoints. Resuming must return a typed error and
//! leave the trainer unchanged, bit for bit.

use std::fs;
use std::path::Path;

use crate::trainers::{Folder, Setting, bytes, colored_graphs, files, ring, state, steps};
use gfn::env::{Rows, VectorStates};
use gfn::examples::word_env;
use gfn::graph::{GraphEnv, GraphKind};
use gfn::nn::{BackwardPolicy, EstimatorsConfig, GraphNet, GraphNetConfig, MlpConfig};
use gfn::objective::{
    FlowMatching, Objective, ProximalPolicy, SubTrajectoryBalance, TrajectoryBalance, TrajectoryLikelihood,
    Weighting, WithBackward,
};
use gfn::policy::{GraphPolicy, KHot, MlpPolicy, MlpPolicyConfig, Policy};
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::train::{Checkpoint, ReplayPath, TrainEnv, Trainer, TrainerConfig};
use gfn::{Error, Rng};
use gfn_gym::ring::Ring;
use tch::Tensor;

/// Checks that a trainer returns an error with these words if it resumes from `path`. Also checks that the
/// trainer stays unchanged, bit for bit.
fn check_unchanged<E>(trainer: &mut Trainer<E>, folder: &Folder, path: &Path, words: &[&str])
where
    E: TrainEnv,
{
    let before = state(trainer, folder);
    let error = trainer.resume(path).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error:?}");
    let message = error.to_string();
    for word in words.iter().copied().chain([path.file_name().unwrap().to_str().unwrap()]) {
        assert!(message.contains(word), "`{message}` lacks `{word}`");
    }
    assert!(state(trainer, folder) == before, "{message}");
}

#[test]
fn damaged_checkpoints_change_nothing() {
    let folder = Folder::new("damaged");
    let setting = Setting::new(1, ReplayPath::Stored);
    let mut trainer = ring(setting);
    steps(&mut trainer, 3);
    let path = folder.join("run");
    trainer.save(&path).unwrap();
    let good = files(&path);
    let mut other = ring(Setting { seed: 2, ..setting });
    steps(&mut other, 2);
    let names = ["manifest.json", "model.safetensors"];
    for (file, name) in names.into_iter().enumerate() {
        let whole = &good[file];
        let cut = |share: usize| whole[..whole.len() * share / 8].to_vec();
        let flipped = |place: usize| {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x10;
            damaged
        };
        let mut cases: Vec<Vec<u8>> = (0..8).map(cut).collect();
        cases.extend((0..24).map(|k| flipped((whole.len() - 1) * k / 23)));
        cases.push([whole.as_slice(), &[0]].concat());
        for case in cases {
            fs::write(path.join(name), case).unwrap();
            check_unchanged(&mut other, &folder, &path, &[": ", "checkpoint"]);
        }
        fs::remove_file(path.join(name)).unwrap();
        check_unchanged(&mut other, &folder, &path, &["give the folder of a checkpoint"]);
        fs::write(path.join(name), whole).unwrap();
    }
    check_unchanged(&mut other, &folder, &folder.join("nowhere"), &["give the folder of a checkpoint"]);
    other.resume(&path).unwrap();
    assert!(state(&other, &folder) == bytes(&path), "what is whole can still be loaded");
}

/// Writes a copy of the checkpoint at `from` whose tensors are changed by `edit`. The copy has valid
/// checksums.
fn forge_checkpoint(
    from: &Path,
    to: &Path,
    trainer: &crate::trainers::RingTrainer,
    edit: impl Fn(&str, &str, Tensor) -> Option<Tensor>,
) -> Result<(), Error> {
    let old = Checkpoint::load(from).unwrap();
    let parameters = Policy::<GraphEnv>::parameters(trainer.policy()).unwrap();
    let manifest = old.manifest();
    let mut new = Checkpoint::new(parameters, manifest.step, manifest.state.clone()).unwrap();
    for section in ["adam", "replay"] {
        let tensors = old.section(section).into_iter();
        let edited = tensors.filter_map(|(name, tensor)| Some((name.clone(), edit(section, &name, tensor)?)));
        new = new.with(section, edited.collect());
    }
    new.with("judged_objects", old.section("judged_objects")).save(to)
}

#[test]
fn checkpoints_with_parts_missing_or_wrong_change_nothing() {
    let folder = Folder::new("parts");
    let setting = Setting::new(1, ReplayPath::Stored);
    let mut trainer = ring(setting);
    steps(&mut trainer, 3);
    let good = folder.join("good");
    trainer.save(&good).unwrap();
    let mut other = ring(Setting { seed: 2, ..setting });
    steps(&mut other, 2);
    let path = folder.join("forged");
    let mut check = |words: &[&str], edit: &dyn Fn(&str, &str, Tensor) -> Option<Tensor>| {
        forge_checkpoint(&good, &path, &trainer, edit).unwrap();
        check_unchanged(&mut other, &folder, &path, words);
    };
    let settings = "resume with the settings";
    check(&["optimiser's state", "without `steps`", settings], &|section, _, t| {
        (section != "adam").then_some(t)
    });
    check(&["optimiser's state", "`m/log_z`"], &|_, name, t| (name != "m/log_z").then_some(t));
    check(&["optimiser's state", "shape"], &|_, name, t| {
        Some(if name == "m/log_z" { t.view([1, 1]) } else { t })
    });
    check(&["replay buffer", "`log_rewards` is missing", settings], &|section, _, t| {
        (section != "replay").then_some(t)
    });
    for part in ["actions", "offsets", "log_rewards"] {
        check(&["replay buffer", part], &|_, name, t| (name != part).then_some(t));
        check(&["replay buffer"], &|_, name, t| {
            Some(if name == part { t.narrow(0, 0, t.size()[0] - 1) } else { t })
        });
    }
    check(&["replay buffer", "`offsets`"], &|_, name, t| Some(if name == "offsets" { t * -1 } else { t }));
    check(&["replay buffer", "not legal"], &|_, name, t| {
        Some(if name == "actions" { t * -1 - 1 } else { t })
    });
    check(&["replay buffer", "not legal"], &|_, name, t| {
        Some(if name == "actions" { t.zeros_like() } else { t })
    });
    for (spoiled, named) in [("v/log_z", "`adam/v/log_z`"), ("log_rewards", "`replay/log_rewards`")] {
        let spoil = |_: &str, name: &str, t: Tensor| Some(if name == spoiled { t * f64::NAN } else { t });
        let message = forge_checkpoint(&good, &path, &trainer, spoil).unwrap_err().to_string();
        assert!(message.contains(&format!("{named} isn't finite")), "not even written: {message}");
    }
    forge_checkpoint(&good, &path, &trainer, |_, _, t| Some(t)).unwrap();
    other.resume(&path).unwrap();
    assert!(state(&other, &folder) == bytes(&good));
}

/// Tests objectives with the same name but different settings, which have different targets. Their
/// checkpoints are distinguished by the objective's description.
#[test]
fn checkpoints_of_other_objectives_change_nothing() {
    let folder = Folder::new("objectives");
    let geometric = |lambda| SubTrajectoryBalance::new(Weighting::GeometricWithin { lambda }).unwrap();
    type Case = (Box<dyn Objective>, Box<dyn Objective>, &'static [&'static str]);
    let cases: [Case; 6] = [
        (
            Box::new(geometric(0.9)),
            Box::new(geometric(0.5)),
            &["other settings of sub-trajectory balance: `weighting.GeometricWithin.lambda` is 0.9 there \
                 and 0.5 here"],
        ),
        (
            Box::new(geometric(0.9)),
            Box::new(SubTrajectoryBalance::new(Weighting::Tb).unwrap()),
            &["`weighting` is {", "lambda", "there and \"Tb\" here"],
        ),
        (
            Box::new(WithBackward::new(TrajectoryBalance, TrajectoryLikelihood)),
            Box::new(TrajectoryBalance),
            &["other settings of trajectory balance: it is {", "there and \"TrajectoryBalance\" here"],
        ),
        (
            Box::new(WithBackward::new(geometric(0.9), TrajectoryLikelihood)),
            Box::new(WithBackward::new(geometric(0.8), TrajectoryLikelihood)),
            &["`forward.settings.weighting.GeometricWithin.lambda` is 0.9 there and 0.8 here"],
        ),
        (
            Box::new(FlowMatching::new(2.0).unwrap()),
            Box::new(FlowMatching::default()),
            &["flow matching: `alpha` is 2.0 there and 1.0 here"],
        ),
        (
            Box::new(ProximalPolicy { kl: 0.5, ..ProximalPolicy::default() }),
            Box::new(ProximalPolicy::default()),
            &["proximal policy optimisation: `kl` is 0.5 there and 0.0 here"],
        ),
    ];
    let make = |objective: Box<dyn Objective>| {
        let env = word_env(2, 2);
        let config = MlpPolicyConfig {
            mlp: MlpConfig { hidden: vec![8], ..MlpConfig::default() },
            estimators: EstimatorsConfig::with_flow(true),
            backward: BackwardPolicy::SharedTorso,
            ..MlpPolicyConfig::default()
        };
        let mut rng = Rng::seeded(0);
        let cpu = (tch::Device::Cpu, tch::Kind::Float);
        let policy = MlpPolicy::new(&env, KHot::new(2, 3), config, cpu.0, cpu.1, &mut rng).unwrap();
        let reward = |states: &VectorStates, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> {
            Ok(vec![0.0; states.len()])
        };
        let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
        Trainer::new(env, reward, policy, objective, config, rng).unwrap()
    };
    for (theirs, ours, words) in cases {
        let path = folder.join("other");
        let mut theirs = make(theirs);
        let mut ours = make(ours);
        steps(&mut theirs, 1);
        theirs.save(&path).unwrap();
        check_unchanged(&mut ours, &folder, &path, words);
        check_unchanged(&mut ours, &folder, &path, &["resume with the settings"]);
        assert!(theirs.resume(&path).is_ok());
    }
}

#[test]
fn checkpoints_of_something_else_change_nothing() {
    let folder = Folder::new("else");
    let setting = Setting::new(1, ReplayPath::Stored);
    let mut coloured = colored_graphs(setting);
    steps(&mut coloured, 2);
    let mut rings = ring(setting);
    steps(&mut rings, 2);
    let [of_coloured, of_rings] = ["coloured", "rings"].map(|name| folder.join(name));
    coloured.save(&of_coloured).unwrap();
    rings.save(&of_rings).unwrap();
    // The objectives are compared before the models. These runs differ in both, so the error must be about
    // the objectives.
    check_unchanged(
        &mut rings,
        &folder,
        &of_coloured,
        &["but this run has trajectory balance", "resume with the settings"],
    );
    check_unchanged(
        &mut coloured,
        &folder,
        &of_rings,
        &["but this run has sub-trajectory balance", "resume with the settings"],
    );

    // The networks are equal, but the graphs have five nodes instead of four, so the same action has another
    // slot. Node labels aren't inputs of the networks (`identity` is `false`), because the networks would
    // then differ in the number of labels.
    let make = |n: usize, replay: bool| {
        let env = Ring::new(n, GraphKind::Directed).unwrap().into_env();
        let mut rng = Rng::seeded(0);
        let config = GraphNetConfig { embedding: 8, identity: false, ..GraphNetConfig::default() };
        let net = GraphNet::new(&env, config, tch::Device::Cpu, tch::Kind::Float, &mut rng).unwrap();
        let config = TrainerConfig { batch: 16, ..TrainerConfig::default() };
        let reward = gfn_gym::ring::RingReward::default();
        let trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap();
        let buffer = ReplayConfig { capacity: 30, eviction: Eviction::Fifo, draw: Draw::Uniform };
        if replay { trainer.with_replay(ReplayBuffer::new(buffer).unwrap()) } else { trainer }
    };
    let mut four = make(4, true);
    let mut five = make(5, true);
    let mut without = make(4, false);
    steps(&mut four, 2);
    steps(&mut five, 1);
    let path = folder.join("four");
    four.save(&path).unwrap();
    check_unchanged(
        &mut five,
        &folder,
        &path,
        &["replay buffer can't be used here", "not legal", "resume with the settings"],
    );
    check_unchanged(&mut without, &folder, &path, &["one of the two runs has a replay buffer"]);
    without.save(&path).unwrap();
    check_unchanged(&mut four, &folder, &path, &["one of the two runs has a replay buffer"]);
}
