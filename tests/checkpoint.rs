//! Tests of checkpoints: saving and loading, damaged files, checkpoints of other models, and interrupted
//! saves.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::trainers::Folder;
use gfn::nn::Parameters;
use gfn::optim::{Adam, AdamConfig, Optimizer};
use gfn::train::Checkpoint;
use gfn::{Error, Rng};
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

fn run_of(folder: &Folder) -> PathBuf {
    folder.join("run")
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(&folder.0).unwrap();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

fn model(seed: u64, width: i64) -> Parameters {
    let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
    let mut rng = Rng::seeded(seed);
    let mut scope = parameters.scope(&mut rng);
    let _ = scope.sub("layer").uniform("weight", &[width, 3], 1.0);
    let _ = scope.constant("log_z", &[], seed as f64);
    parameters
}

fn values(parameters: &Parameters) -> Vec<Tensor> {
    let copies = parameters.iter().map(|p| p.tensor.detach().copy());
    copies.collect()
}

fn checkpoint(seed: u64) -> Checkpoint {
    Checkpoint::new(&model(seed, 4), seed, Value::Null).unwrap()
}

/// Returns the step that a checkpoint holds. Tests save the model with seed `n` at step `n`, so the function
/// also checks that the parameters are those of the model whose seed is this step.
fn seed_at(path: &Path) -> u64 {
    let checkpoint = Checkpoint::load(path).unwrap();
    let parameters = model(99, 4);
    checkpoint.restore(&parameters).unwrap();
    let seed = checkpoint.manifest().step;
    assert_eq!(values(&parameters), values(&model(seed, 4)));
    seed
}

fn check_refused<T: std::fmt::Debug>(result: gfn::Result<T>, expected: &str) {
    match result {
        Err(error @ Error::File { .. }) => {
            let message = error.to_string();
            assert!(message.contains(expected), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the shape, the data type and the bytes of a tensor.
fn bits(tensor: &Tensor) -> (Vec<i64>, Kind, Vec<u8>) {
    let t = tensor.contiguous();
    let mut bytes = vec![0; t.numel() * t.kind().elt_size_in_bytes()];
    t.copy_data_u8(&mut bytes, t.numel());
    (t.size(), t.kind(), bytes)
}

#[test]
#[rustfmt::skip]
fn everything_comes_back_bit_for_bit() {
    let folder = Folder::new("round-trip");
    let mut rng = Rng::seeded(8);
    let parameters = model(1, 4);
    let mut adam = Adam::new(&parameters, AdamConfig::default()).unwrap();
    for p in &parameters {
        p.tensor.square().sum(Kind::Float).backward();
    }
    adam.step().unwrap();
    let floats: Vec<f64> = (0..1000).map(|_| rng.normal() * rng.normal().exp()).collect();
    let replay = vec![
        ("moves".to_owned(), Tensor::from_slice(&[i64::MIN, -1, i64::MAX])),
        ("kinds".to_owned(), Tensor::from_slice(&[0u8, 255]).view([2, 1])),
        ("log_rewards".to_owned(), Tensor::from_slice(&[0.1, f64::MIN, -0.0])),
        ("strided".to_owned(), Tensor::arange(6, (Kind::Float, Device::Cpu)).view([2, 3]).tr()),
        ("empty".to_owned(), Tensor::zeros([0, 4], (Kind::Int64, Device::Cpu))),
    ];
    let expected: Vec<_> = replay.iter().map(|(n, t)| (n.clone(), bits(t))).collect();
    Checkpoint::new(&parameters, 7, json!({ "rng": rng, "floats": floats }))
        .unwrap()
        .with("adam", adam.state().unwrap())
        .with("replay", replay)
        .save(run_of(&folder))
        .unwrap();
    assert_eq!(names(&folder), ["run"]);

    let loaded = Checkpoint::load(run_of(&folder)).unwrap();
    let fresh = model(2, 4);
    let mut other = Adam::new(&fresh, AdamConfig::default()).unwrap();
    loaded.restore(&fresh).unwrap();
    other.load_state(&loaded.section("adam")).unwrap();
    assert_eq!(values(&fresh), values(&parameters));
    assert_eq!(other.state().unwrap(), adam.state().unwrap());
    let found = loaded.section("replay");
    for (name, before) in expected {
        let (_, tensor) = found.iter().find(|(n, _)| *n == name).unwrap();
        assert_eq!(bits(tensor), before, "{name}");
    }
    assert_eq!((found.len(), loaded.section("rep").len()), (5, 0));
    let state = &loaded.manifest().state;
    let mut resumed: Rng = serde_json::from_value(state["rng"].clone()).unwrap();
    assert_eq!(resumed.uniform(), rng.uniform());
    let back: Vec<f64> = serde_json::from_value(state["floats"].clone()).unwrap();
    assert_eq!(back, floats);
}

#[test]
fn a_save_replaces_the_checkpoint_before_it_and_nothing_else() {
    let folder = Folder::new("replace");
    let path = run_of(&folder);
    for seed in [1, 2, 3] {
        checkpoint(seed).save(&path).unwrap();
        assert_eq!(seed_at(&path), seed);
    }
    assert_eq!(names(&folder), ["run"]);

    let notes = path.join("notes.txt");
    fs::write(&notes, "mine").unwrap();
    let new = checkpoint(4);
    check_refused(new.save(&path), "notes.txt");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine");
    assert_eq!(seed_at(&path), 3);

    let file = folder.0.join("file");
    fs::write(&file, "mine").unwrap();
    check_refused(new.save(&file), "not a folder");
    check_refused(new.save(file.join("inside")), "not a folder");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    check_refused(new.save("/"), "doesn't end in a name");

    let empty = folder.0.join("empty");
    let nested = folder.0.join("new/nested");
    fs::create_dir(&empty).unwrap();
    for path in [empty, nested] {
        new.save(&path).unwrap();
        assert_eq!(seed_at(&path), 4);
    }
}

#[test]
fn an_interrupted_save_leaves_a_whole_checkpoint() {
    let folder = Folder::new("interrupted");
    let path = run_of(&folder);
    checkpoint(1).save(&path).unwrap();
    // The save was interrupted while it wrote files, so a partial folder is next to the old checkpoint.
    let partial = folder.0.join(".run.partial");
    fs::create_dir(&partial).unwrap();
    fs::write(partial.join("model.safetensors"), "half").unwrap();
    assert_eq!(seed_at(&path), 1);
    checkpoint(2).save(&path).unwrap();
    assert_eq!(seed_at(&path), 2);
    // The save was interrupted between the two renames. The old checkpoint has been moved away, and the new
    // checkpoint is complete.
    checkpoint(3).save(&partial).unwrap();
    fs::rename(&path, folder.0.join(".run.previous")).unwrap();
    assert!(Checkpoint::exists(&path) && !Checkpoint::exists(folder.join("other")));
    // A resumed run first tests whether it can write to the path. This test must repair the interrupted
    // save.
    Checkpoint::try_path(&path).unwrap();
    assert!(Checkpoint::exists(&path));
    assert_eq!(seed_at(&path), 2);
    checkpoint(3).save(&path).unwrap();
    assert_eq!(seed_at(&path), 3);
    assert_eq!(names(&folder), ["run"]);
    // The save was interrupted after the new checkpoint was in place and before the old checkpoint was
    // removed. Then a user removes the run.
    checkpoint(2).save(folder.join(".run.previous")).unwrap();
    assert_eq!(seed_at(&path), 3);
    fs::remove_dir_all(&path).unwrap();
    assert!(!Checkpoint::exists(&path) && Checkpoint::load(&path).is_err());
    // The first save of another run is interrupted. The removed checkpoint must not reappear.
    fs::create_dir(&partial).unwrap();
    fs::write(partial.join("model.safetensors"), "half").unwrap();
    assert!(!Checkpoint::exists(&path));
    checkpoint(4).save(&path).unwrap();
    assert_eq!((seed_at(&path), names(&folder)), (4, vec!["run".to_owned()]));
}

#[test]
fn damage_is_refused() {
    let folder = Folder::new("damage");
    let path = run_of(&folder);
    let tensors = path.join("model.safetensors");
    let manifest = path.join("manifest.json");
    checkpoint(1).save(&path).unwrap();
    let data = fs::read(&tensors).unwrap();
    let text = fs::read_to_string(&manifest).unwrap();

    for keep in [0, 1, data.len() / 2, data.len() - 1] {
        fs::write(&tensors, &data[..keep]).unwrap();
        check_refused(Checkpoint::load(&path), "bytes");
    }
    for position in [0, 9, data.len() / 2, data.len() - 1] {
        let mut flipped = data.clone();
        flipped[position] ^= 1;
        fs::write(&tensors, &flipped).unwrap();
        check_refused(Checkpoint::load(&path), "checksum");
    }
    fs::write(&tensors, &data).unwrap();
    assert_eq!(seed_at(&path), 1);

    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        fs::write(&manifest, text.replace(from, to)).unwrap();
        Checkpoint::load(&path)
    };
    check_refused(changed("\"step\": 1", "\"step\": 2"), "checksum");
    // An older and a newer format version must give an error.
    for other in [1, 3] {
        let named = format!("checkpoint has format {other}, but this version of gfn reads format 2");
        check_refused(changed("\"format\": 2", &format!("\"format\": {other}")), &named);
    }
    check_refused(changed("\"format\": 2", "\"other\": 2"), "format");
    check_refused(changed("}", ""), "isn't the manifest");
    fs::remove_file(&manifest).unwrap();
    check_refused(Checkpoint::load(&path), "manifest.json");
    fs::write(&manifest, &text).unwrap();
    fs::remove_file(&tensors).unwrap();
    check_refused(Checkpoint::load(&path), "model.safetensors");
    check_refused(Checkpoint::load(folder.0.join("nowhere")), "nowhere");
}

#[test]
fn another_model_is_refused_and_left_as_it_is() {
    let folder = Folder::new("other-model");
    checkpoint(1).save(run_of(&folder)).unwrap();
    let saved = Checkpoint::load(run_of(&folder)).unwrap();
    let mut rng = Rng::seeded(0);

    let wider = model(2, 5);
    let shapes = "the checkpoint has `layer.weight` [4, 3] F32, but the model has `layer.weight` [5, 3] F32";
    check_refused(saved.restore(&wider), shapes);
    assert_eq!(values(&wider), values(&model(2, 5)));

    let mut more = model(2, 4);
    let _ = more.scope(&mut rng).constant("extra", &[1], 0.0);
    check_refused(saved.restore(&more), "the model has `extra` [1] F32, but the checkpoint doesn't");
    let empty = Parameters::new(Device::Cpu, Kind::Float);
    check_refused(saved.restore(&empty), "but the model doesn't");

    for (kind, expected) in [(Kind::Double, "F64"), (Kind::Float, "another order")] {
        let mut other = Parameters::new(Device::Cpu, kind);
        let mut scope = other.scope(&mut rng);
        let _ = scope.constant("log_z", &[], 0.0);
        let _ = scope.constant("layer.weight", &[4, 3], 0.0);
        check_refused(saved.restore(&other), expected);
    }
}

#[test]
fn a_model_that_is_not_finite_never_replaces_a_good_one() {
    let folder = Folder::new("not-finite");
    checkpoint(1).save(run_of(&folder)).unwrap();
    let broken = model(2, 4);
    tch::no_grad(|| {
        let weight = &broken.iter().next().unwrap().tensor;
        let _ = weight.get(1).fill_(f64::NAN);
    });
    let new = Checkpoint::new(&broken, 2, Value::Null).unwrap();
    check_refused(new.save(run_of(&folder)), "`layer.weight` isn't finite");
    assert_eq!(seed_at(&run_of(&folder)), 1);
    // A checkpoint with values that aren't finite can't be restored either.
    let good = model(3, 4);
    check_refused(new.restore(&good), "isn't finite");
    assert_eq!(values(&good), values(&model(3, 4)));
}

#[test]
fn no_section_that_is_not_finite_replaces_a_good_checkpoint() {
    let folder = Folder::new("section-not-finite");
    checkpoint(1).save(run_of(&folder)).unwrap();
    for section in ["adam", "average", "target_network", "novelty", "teacher", "replay", "mine"] {
        for (bad, kind) in
            [(f64::NAN, Kind::Float), (f64::INFINITY, Kind::Float), (f64::NEG_INFINITY, Kind::Double)]
        {
            let tensor = Tensor::from_slice(&[1.0, bad, 2.0]).to_kind(kind);
            let new = checkpoint(2).with(section, vec![("v/x".to_owned(), tensor)]);
            check_refused(new.save(run_of(&folder)), &format!("`{section}/v/x` isn't finite"));
            assert_eq!(seed_at(&run_of(&folder)), 1);
        }
    }
    assert_eq!(names(&folder), ["run"]);
}

#[test]
fn tensors_with_one_name_or_unsupported_kinds_are_refused() {
    let folder = Folder::new("sections");
    let one = |kind| vec![("x".to_owned(), Tensor::zeros([2], (kind, Device::Cpu)))];
    let twice = checkpoint(1).with("a", one(Kind::Float));
    let twice = twice.with("a", one(Kind::Float));
    check_refused(twice.save(run_of(&folder)), "`a/x`");
    let half = checkpoint(1).with("a", one(Kind::Half));
    check_refused(half.save(run_of(&folder)), "Half");
    assert!(names(&folder).is_empty());
}
