//! Tests of data sets on disk. Every container must be loaded as it was saved. Damaged, truncated or
//! foreign data sets must give errors.

use std::fs;
use std::path::Path;

use crate::trainers::Folder;
use gfn::env::{DiscreteEnv, EnumerableEnv, VectorEnv};
use gfn::examples::Chain;
use gfn::policy::UniformPolicy;
use gfn::replay::{Draw, Eviction, ReplayBuffer, ReplayConfig};
use gfn::rollout::{Container, Sampler, Trajectories};
use gfn::{Error, Rng};
use gfn_gym::colored_graphs::ColoredGraphs;
use gfn_gym::hypergrid::HyperGrid;
use gfn_gym::ring::Ring;
use tch::{Kind, Tensor};

fn sample_trajectories<E: DiscreteEnv>(env: &E, n: usize, seed: u64) -> Trajectories<E> {
    let trajectories = Sampler::new(env, &UniformPolicy).forward(n, &mut Rng::seeded(seed)).unwrap();
    let n = trajectories.len();
    let conditions: Vec<f32> = (0..2 * n).map(|i| 0.1 * i as f32).collect();
    let log_rewards = (0..n).map(|i| -1e4 - 0.1 * i as f64).collect();
    let conditions = Tensor::from_slice(&conditions).view([n as i64, 2]);
    trajectories.with_conditions(conditions).unwrap().with_log_rewards(log_rewards).unwrap()
}

/// Saves and loads trajectories, and checks that the loaded states have the same keys.
fn round_trip<E: EnumerableEnv>(env: &E, folder: &Folder) {
    let path = folder.join("data");
    let keys = |states: &E::States| env.keys(states);
    let trajectories = sample_trajectories(env, 40, 1);
    trajectories.save(env, &path).unwrap();
    let loaded = Trajectories::load(env, &path).unwrap();
    assert_eq!(loaded.offsets(), trajectories.offsets());
    assert_eq!(keys(loaded.states()), keys(trajectories.states()));
    assert_eq!(keys(loaded.terminal_states()), keys(trajectories.terminal_states()));
    assert_eq!(loaded.is_exit(), trajectories.is_exit());
    assert_eq!(loaded.conditions(), trajectories.conditions());
    assert_eq!(loaded.recorded_log_rewards(), trajectories.recorded_log_rewards(), "bit for bit");
    // The first save and load may have renamed nodes, which changes actions: loaded trajectories label nodes
    // in the order of their insertion. A second save and load must keep the actions.
    loaded.save(env, &path).unwrap();
    let again = Trajectories::load(env, &path).unwrap();
    assert_eq!((again.actions(), again.reverse_actions()), (loaded.actions(), loaded.reverse_actions()));

    // Trajectories that were sampled backwards must be saved and loaded, too.
    let back = Sampler::new(env, &UniformPolicy)
        .backward(trajectories.terminal_states(), &mut Rng::seeded(2))
        .unwrap();
    back.save(env, &path).unwrap();
    let loaded = Trajectories::load(env, &path).unwrap();
    assert_eq!(keys(loaded.states()), keys(back.states()));
    assert!(loaded.conditions().is_none() && loaded.recorded_log_rewards().is_none());
}

#[test]
fn containers_come_back_from_every_kind_of_environment() {
    let folder = Folder::new("data-round");
    round_trip(&Chain::new(12), &folder);
    round_trip(&HyperGrid::new(3, 5).unwrap().env(), &folder);
    round_trip(&Ring::new(4, gfn::graph::GraphKind::Undirected).unwrap().into_env(), &folder);
    round_trip(&ColoredGraphs::new(5).unwrap().into_env(), &folder);
}

#[test]
fn labelled_actions_come_back_as_they_were() {
    let folder = Folder::new("data-exact");
    let env = HyperGrid::new(3, 5).unwrap().env();
    let path = folder.join("data");
    let trajectories = sample_trajectories(&env, 50, 0);
    trajectories.save(&env, &path).unwrap();
    let loaded = Trajectories::load(&env, &path).unwrap();
    assert_eq!((loaded.actions(), loaded.states()), (trajectories.actions(), trajectories.states()));
}

#[test]
fn empty_containers_come_back_empty() {
    let folder = Folder::new("data-empty");
    let env = Chain::new(5);
    let path = folder.join("data");
    let none = sample_trajectories(&env, 3, 0).select(0..0).unwrap();
    none.save(&env, &path).unwrap();
    assert!(Trajectories::load(&env, &path).unwrap().is_empty());
    let config = ReplayConfig { capacity: 5, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let mut buffer = ReplayBuffer::<Chain>::new(config).unwrap();
    buffer.load_state(&env, &buffer.state(&env).unwrap()).unwrap();
    assert!(buffer.is_empty());
}

fn filled_buffer<E: EnumerableEnv + 'static>(
    env: &E,
    mut buffer: ReplayBuffer<E>,
    conditional: bool,
) -> ReplayBuffer<E> {
    let trajectories = sample_trajectories(env, 120, 7);
    let mut walks = trajectories.walks(env).unwrap();
    if !conditional {
        walks.conditions = None;
    }
    let log_rewards: Vec<f64> = (0..120).map(|i| -1e4 * f64::from(i % 13)).collect();
    buffer.add(env, &walks, &log_rewards).unwrap();
    let drawn = buffer.draw_entries(10, &mut Rng::seeded(1)).unwrap();
    let losses: Vec<f64> = (0..10).map(|i| 0.3 * f64::from(i)).collect();
    buffer.update_losses(&drawn.serials, &losses).unwrap();
    buffer
}

#[test]
fn buffers_come_back_with_losses_conditions_and_eviction_order() {
    let env = HyperGrid::new(2, 9).unwrap().env();
    let draw = Draw::LossPrioritised { exponent: 0.7 };
    for (eviction, conditional, paths) in [
        (Eviction::Fifo, false, true),
        (Eviction::BestReward, true, true),
        (Eviction::Fifo, true, false),
        (Eviction::BestReward, false, false),
    ] {
        let make = || {
            let config = ReplayConfig { capacity: 20, eviction, draw };
            let buffer = ReplayBuffer::distinct(config).unwrap();
            if paths { buffer } else { buffer.terminal_only() }
        };
        let mut first = filled_buffer(&env, make(), conditional);
        assert_eq!(first.len(), 20);
        let mut second = make();
        second.load_state(&env, &first.state(&env).unwrap()).unwrap();
        let tensors = |buffer: &ReplayBuffer<VectorEnv>| buffer.state(&env).unwrap();
        assert_eq!(tensors(&first), tensors(&second));
        let more = sample_trajectories(&env, 30, 8);
        let mut walks = more.walks(&env).unwrap();
        if !conditional {
            walks.conditions = None;
        }
        for buffer in [&mut first, &mut second] {
            buffer.add(&env, &walks, &[-2.5e4; 30]).unwrap();
        }
        assert_eq!(tensors(&first), tensors(&second), "{eviction:?}: evictions go on as before");
        let [a, b] = [&first, &second].map(|buffer| buffer.draw_entries(50, &mut Rng::seeded(3)).unwrap());
        assert_eq!(a.walks.conditions(), b.walks.conditions());
        assert_eq!((a.serials, a.log_probs, a.walks.terminal), (b.serials, b.log_probs, b.walks.terminal));
    }
    // This buffer stores states without paths, and the environment compares states up to isomorphism. Saving
    // and loading must nevertheless keep the order of each state's nodes.
    let env = ColoredGraphs::new(4).unwrap().into_env();
    let config = ReplayConfig { capacity: 30, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let first = filled_buffer(&env, ReplayBuffer::distinct(config).unwrap().terminal_only(), false);
    let mut second = ReplayBuffer::distinct(config).unwrap().terminal_only();
    second.load_state(&env, &first.state(&env).unwrap()).unwrap();
    let [a, b] = [&first, &second].map(|buffer| buffer.walks().unwrap().terminal);
    assert_eq!(a, b);
    // The order of nodes must also be kept for objects that came to the buffer without a path.
    let objects = first.walks().unwrap();
    assert!(!objects.has_paths());
    let mut plain = ReplayBuffer::new(config).unwrap().terminal_only();
    plain.add(&env, &objects, &vec![0.0; objects.len()]).unwrap();
    let [mut again, held] = [ReplayBuffer::new(config).unwrap().terminal_only(), plain];
    again.load_state(&env, &held.state(&env).unwrap()).unwrap();
    let [a, b] = [&held, &again].map(|buffer| buffer.walks().unwrap().terminal);
    assert_eq!(a, b);
    assert_eq!(env.keys(&a), env.keys(&objects.terminal));
}

#[test]
fn buffers_refuse_data_that_they_cannot_hold() {
    let env = Chain::new(30);
    let config = ReplayConfig { capacity: 20, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let full = filled_buffer(&env, ReplayBuffer::new(config).unwrap(), false);
    let state = full.state(&env).unwrap();
    let mut small = ReplayBuffer::new(ReplayConfig { capacity: 19, ..config }).unwrap();
    small.add(&env, &full.draw(2, &mut Rng::seeded(0)).unwrap(), &[1.0, 2.0]).unwrap();
    let check_refused = |buffer: &mut ReplayBuffer<Chain>, words: &str| {
        let before = buffer.state(&env).unwrap();
        let error = buffer.load_state(&env, &state).unwrap_err();
        assert!(matches!(error, Error::Contract { .. }) && error.to_string().contains(words), "{error}");
        assert_eq!(buffer.state(&env).unwrap(), before);
    };
    check_refused(&mut small, "20 objects were saved, but the capacity is 19");
    check_refused(&mut ReplayBuffer::distinct(config).unwrap(), "would not keep object");
}

/// Checks that loading fails with [`Error::File`], and that the message has all of these words.
fn check_refused(env: &Chain, path: &Path, words: &[&str]) {
    match Trajectories::load(env, path) {
        Err(error @ Error::File { .. }) => {
            let message = error.to_string();
            for word in words {
                assert!(message.contains(word), "`{message}` lacks `{word}`");
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn damaged_and_cut_off_data_sets_are_refused() {
    let folder = Folder::new("data-damaged");
    let env = Chain::new(12);
    let path = folder.join("data");
    sample_trajectories(&env, 20, 0).save(&env, &path).unwrap();
    for name in ["manifest.json", "data.safetensors"] {
        let whole = fs::read(path.join(name)).unwrap();
        let mut cases: Vec<Vec<u8>> = (0..8).map(|share| whole[..whole.len() * share / 8].to_vec()).collect();
        for k in 0..32 {
            let mut damaged = whole.clone();
            damaged[(whole.len() - 1) * k / 31] ^= 0x10;
            cases.push(damaged);
        }
        cases.push([whole.as_slice(), &[0]].concat());
        for case in cases {
            fs::write(path.join(name), case).unwrap();
            check_refused(&env, &path, &["data"]);
        }
        fs::remove_file(path.join(name)).unwrap();
        check_refused(&env, &path, &["can't be read", "give the folder of a data set"]);
        fs::write(path.join(name), whole).unwrap();
    }
    check_refused(&env, &folder.join("nowhere"), &["can't be read"]);
    assert_eq!(Trajectories::load(&env, &path).unwrap().len(), 20, "what is whole can still be loaded");
}

/// Replaces a text in the manifest file, which must contain it.
fn edit_manifest(path: &Path, from: &str, to: &str) {
    let file = path.join("manifest.json");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(file, text.replace(from, to)).unwrap();
}

#[test]
fn data_sets_of_something_else_are_refused() {
    let folder = Folder::new("data-else");
    let env = Chain::new(12);
    let path = folder.join("data");
    let all = sample_trajectories(&env, 20, 0);
    all.save(&env, &path).unwrap();
    for n in [1, 2, 11, 13, 100] {
        check_refused(&Chain::new(n), &path, &["another environment", "with the same size"]);
    }
    let error = Trajectories::load(&HyperGrid::new(2, 12).unwrap().env(), &path).unwrap_err();
    assert!(
        matches!(error, Error::File { .. }) && error.to_string().contains("another environment"),
        "{error}"
    );
    edit_manifest(&path, "\"format\": 2", "\"format\": 3");
    check_refused(&env, &path, &["data set has format 3, but this version of gfn reads format 2"]);
    // Saving must not overwrite a folder that has other content.
    let other = folder.join("other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("thesis.tex"), "years").unwrap();
    let error = all.save(&env, &other).unwrap_err();
    assert!(error.to_string().contains("holds `thesis.tex` too"), "{error}");
    assert_eq!(fs::read_to_string(other.join("thesis.tex")).unwrap(), "years");
    assert!(all.save(&env, other.join("thesis.tex")).is_err());
}

#[test]
fn an_interrupted_save_leaves_the_old_data_set() {
    let folder = Folder::new("data-interrupted");
    let env = Chain::new(12);
    let path = folder.join("data");
    sample_trajectories(&env, 5, 0).save(&env, &path).unwrap();
    // Two interruptions are simulated: one while the new folder was written, and one between the two renames
    // by which a save replaces the old folder.
    fs::create_dir_all(folder.join(".data.partial")).unwrap();
    fs::write(folder.join(".data.partial").join("data.safetensors"), "half").unwrap();
    assert_eq!(Trajectories::load(&env, &path).unwrap().len(), 5);
    sample_trajectories(&env, 6, 0).save(&env, folder.join(".data.partial")).unwrap();
    fs::rename(&path, folder.join(".data.previous")).unwrap();
    assert_eq!(Trajectories::load(&env, &path).unwrap().len(), 5);
    sample_trajectories(&env, 6, 0).save(&env, &path).unwrap();
    assert_eq!(Trajectories::load(&env, &path).unwrap().len(), 6);
    assert!(!folder.join(".data.partial").exists());
}

/// Tests saved states of a buffer in which one tensor is changed or missing. Loading such a state must give a
/// typed error and leave the buffer unchanged.
#[test]
fn forged_tensors_are_typed_errors() {
    let env = Chain::new(30);
    let config = ReplayConfig { capacity: 20, eviction: Eviction::Fifo, draw: Draw::Uniform };
    let full = filled_buffer(&env, ReplayBuffer::new(config).unwrap(), true);
    let state = full.state(&env).unwrap();
    let mut buffer = ReplayBuffer::new(config).unwrap();
    buffer.load_state(&env, &state).unwrap();
    let before = buffer.state(&env).unwrap();
    let names = ["actions", "offsets", "log_rewards", "serials", "losses", "added"];
    type Edit = fn(&Tensor) -> Option<Tensor>;
    let of_all: [Edit; 4] = [
        |_| None,
        |t| Some(t.narrow(0, 0, t.size()[0] - 1)),
        |t| Some(t.to_kind(Kind::Float)),
        |t| Some(t.unsqueeze(0)),
    ];
    let mut cases: Vec<(&str, Edit)> =
        names.iter().flat_map(|&name| of_all.map(|edit| (name, edit))).collect();
    cases.extend([
        ("actions", (|t| Some(t - 1)) as Edit),
        ("actions", |t| Some(t + (1i64 << 32))),
        ("offsets", |t| Some(t + 1)),
        ("offsets", |t| Some(-t)),
        ("log_rewards", |t| Some(t * f64::NAN)),
        ("log_rewards", |t| Some(t - f64::INFINITY)),
        ("serials", |t| Some(t - 1000)),
        ("serials", |t| Some(t.zeros_like())),
        ("losses", |t| Some(t - 1.5)),
        ("losses", |t| Some(t * f64::NAN)),
        ("added", |t| Some(t.zeros_like())),
        ("conditions", |t| Some(t * f64::NAN)),
        ("conditions", |t| Some(t.narrow(0, 0, 3))),
        ("conditions", |t| Some(t.view(-1))),
    ]);
    for (k, (name, edit)) in cases.into_iter().enumerate() {
        let forged =
            state.iter().filter_map(|(n, t)| Some((n.clone(), if n == name { edit(t)? } else { t.copy() })));
        let forged: Vec<(String, Tensor)> = forged.collect();
        let error = buffer.load_state(&env, &forged).unwrap_err();
        let typed = matches!(
            error,
            Error::Contract { .. }
                | Error::IllegalAction { .. }
                | Error::NonFinite { .. }
                | Error::Shape { .. }
        );
        assert!(typed, "{k}, `{name}`: {error:?}");
        assert_eq!(buffer.state(&env).unwrap(), before, "{k}: unchanged");
    }
}
