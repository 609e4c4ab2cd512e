//! Tests that every reader and writer reports a path that doesn't exist, in an error with the path and a
//! remedy.

use gfn::graph::{GraphState, read_graphs, write_graphs};
use gfn::train::Checkpoint;
use gfn::{Error, Result};
use gfn_dags::{ContinuousData, DiscreteNetwork};
use gfn_gym::graph_problems::Instances;
use gfn_molecules::fragments::{FragmentLibrary, Vocabulary};
use gfn_molecules::{KnownMolecules, Molecule, MoleculeReader, Ranking};
use gfn_plot::{Figure, PictureSheet};

use crate::trainers::Folder;

/// A function that reads a file at the given path, or fails.
type Reader = fn(&std::path::Path) -> Result<()>;

fn message<T>(result: Result<T>) -> String {
    let error = result.map(drop).unwrap_err();
    assert!(matches!(error, Error::Io { .. } | Error::File { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn readers_say_what_to_do() {
    let folder = Folder::new("missing-read");
    let readers: [(&str, Reader); 8] = [
        ("graphs", |path| read_graphs(path).map(drop)),
        ("instances", |path| Instances::read(path).map(drop)),
        ("molecules", |path| MoleculeReader::open(path).map(drop)),
        ("known molecules", |path| KnownMolecules::read(path).map(drop)),
        ("library", |path| FragmentLibrary::read(path).map(drop)),
        ("vocabulary", |path| Vocabulary::read(path).map(drop)),
        ("continuous data", |path| ContinuousData::read(path).map(drop)),
        ("network", |path| DiscreteNetwork::read_bif(path).map(drop)),
    ];
    for (name, read) in readers {
        let file = message(read(&folder.0.join("nothing.txt")));
        assert!(file.contains("nothing.txt") && file.contains("check the path"), "{name}: {file}");
        let inside = message(read(&folder.0.join("nowhere/nothing.txt")));
        assert!(inside.contains("nothing.txt") && inside.contains("check the path"), "{name}: {inside}");
    }
    let checkpoint = message(Checkpoint::load(folder.0.join("nothing")));
    assert!(
        checkpoint.contains("nothing") && checkpoint.contains("give the folder of a checkpoint"),
        "{checkpoint}"
    );
}

#[test]
fn writers_make_the_folder_or_say_that_it_is_missing() {
    let folder = Folder::new("missing-write");
    let inside = |name: &str| folder.0.join("nowhere").join(name);
    let graphs = [GraphState::undirected(3)];
    let refused = [
        ("sheet", message(PictureSheet::new("title", 100.0).write(inside("a.svg")))),
        ("figure", message(Figure::new("title").write(inside("a.svg")))),
        ("graphs", message(write_graphs(inside("a.g6"), &graphs))),
    ];
    for (name, message) in refused {
        assert!(
            message.ends_with("nowhere doesn't exist: check the path, or create the folder"),
            "{name}: {message}"
        );
    }
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0, "something was written");
    // `Ranking::write` writes a folder, which it creates together with its parent folders.
    let ranking = Ranking::new(&[Molecule::from_smiles("C").unwrap()], &[0.0]).unwrap();
    ranking.write(inside("ranking"), "title", 1).unwrap();
    assert!(inside("ranking").join("molecules.csv").exists());
}
