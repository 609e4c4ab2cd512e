//! Fuzz tests of functions that read text and files.

#[allow(dead_code, unreachable_pub, reason = "the examples' module, used as it is")]
#[path = "../../examples/reproduce/flags/config_file.rs"]
mod config_file;

use std::path::PathBuf;

use crate::attack::Target;
use gfn::graph::{GraphFormat, NamedGraph};
use gfn_dags::{ContinuousData, DiscreteData, DiscreteNetwork, named_edges};
use gfn_gym::graph_problems::{Instances, read_dimacs, write_dimacs};
use gfn_gym::phylo_tree::PhyloTree;
use gfn_gym::sequence::{Alphabet, TableReward, TokenSequence};
use gfn_molecules::fragments::{FragmentLibrary, Vocabulary};
use gfn_molecules::{
    Cleanup, KnownMolecules, Molecule, MoleculeFormat, MoleculeReader, MoleculeScore, ScoreConfig,
};

/// A temporary file that is removed when the value is dropped.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("gfn-fuzz-{}-{name}", std::process::id());
        // The file is in memory if the system has a folder for that.
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
        Self(folder.join(name))
    }

    fn with(&self, bytes: &[u8]) -> &PathBuf {
        std::fs::write(&self.0, bytes).unwrap();
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn seeds(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

const GRAPHS: [&str; 4] = [
    "graph directed 4\nnode 0 class 1 attributes 2 0 5\nedge 0 1 class 2\nedge 1 0\ngraph undirected 2 # \
     two\nedge 0 1 attributes 0 3\n",
    "# FromNodeId  ToNodeId\n0 1\n1 7 {'weight': 0.5}\n7 0 3.5\n",
    "a b\nb c\nc a\n",
    "graph undirected 16384\n",
];

#[test]
fn edge_lists() {
    let words = [
        "graph ",
        "directed ",
        "undirected ",
        "node ",
        "edge ",
        " class ",
        " attributes ",
        "\n",
        "#",
        "65535",
        "16385",
    ];
    Target { name: "edge lists", seeds: seeds(&GRAPHS), words: &words, bytes_per_byte: 1 << 12 }.attack(
        80_000,
        |text| {
            if let Ok(graphs) = GraphFormat::EdgeList.read(text) {
                // Graphs that were read must stay unchanged if they are written and read again. Writing fails
                // if the reader would refuse the written text. The reader permits less memory for a shorter
                // text, and the written text lacks the comments of the first text.
                if let Ok(again) = GraphFormat::EdgeList.write(&graphs) {
                    assert!(GraphFormat::EdgeList.read(again.as_bytes()).unwrap() == graphs);
                }
            }
            if let Ok(named) = NamedGraph::from_edges(text) {
                assert_eq!(named.names.len(), named.graph.n_nodes());
            }
        },
    );
}

#[test]
fn graph6() {
    let texts = ["Bw\n", ">>graph6<<DhC\nFoSvw\n", "&C?QG\n", ">>digraph6<<&BOO\n", "~?@?\n", "~~?????A\n"];
    let words = ["~", "~~", "&", ">>graph6<<", ">>digraph6<<", "?", "\n", "~~~~~~~~"];
    Target { name: "graph6", seeds: seeds(&texts), words: &words, bytes_per_byte: 1 << 12 }.attack(
        100_000,
        |text| {
            if let Ok(graphs) = GraphFormat::Graph6.read(text) {
                let again = GraphFormat::Graph6.write(&graphs).unwrap();
                assert!(GraphFormat::Graph6.read(again.as_bytes()).unwrap() == graphs);
            }
        },
    );
}

#[test]
fn input_graphs_of_files() {
    let dimacs = "c a triangle\np edge 3 3\ne 1 2\ne 2 3\ne 1 3\n";
    let words = ["p edge ", "p col ", "e ", "c ", "\n", "graph undirected ", "edge "];
    let texts: Vec<&str> = GRAPHS.into_iter().chain([dimacs]).collect();
    let clq = Scratch::new("graph.clq");
    let txt = Scratch::new("graph.txt");
    Target { name: "input graphs", seeds: seeds(&texts), words: &words, bytes_per_byte: 1 << 12 }.attack(
        40_000,
        |text| {
            if let Ok(graph) = read_dimacs(text) {
                assert!(read_dimacs(write_dimacs(&graph).unwrap().as_bytes()).unwrap() == graph);
            }
            for file in [&clq, &txt] {
                let path = file.with(text);
                let _ = (Instances::read(path), Instances::read_named(path));
            }
        },
    );
}

const SMILES: &str = include_str!("../../gym/molecules/tests/golden/molecules_cno_4.smi");
const MORE_SMILES: [&str; 12] = [
    "CC(=O)Oc1ccccc1C(=O)O",
    "C[C@H](N)C(=O)O",
    "F/C=C/F",
    "[NH4+].[Cl-]",
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
    "c1ccc2[nH]ccc2c1",
    "C%12CCCCC%12",
    "[13CH3][C@@](F)(Cl)Br",
    "O=S(=O)(N)c1ccc(cc1)-c1cc(nn1-c1ccc(C)cc1)C(F)(F)F",
    "C1CC2CCC1C2",
    "[O-][N+](=O)c1ccccc1",
    "N#Cc1cc[se]c1",
];
const SMILES_WORDS: [&str; 30] = [
    "[H]",
    "[2H]",
    "N(=O)=O",
    "N=N#N",
    "(",
    ")",
    "[",
    "]",
    "@",
    "@@",
    "/",
    "\\",
    "=",
    "#",
    ".",
    "%99",
    "[C@H]",
    "[nH]",
    "c1ccccc1",
    "[NH4+]",
    "[13C]",
    "Cl",
    "Br",
    "+",
    "-",
    "[O-]",
    ":",
    "1",
    "((((((((",
    "[Fe+9999999]",
];

fn smiles() -> Vec<Vec<u8>> {
    SMILES.lines().step_by(40).chain(MORE_SMILES).map(|line| line.as_bytes().to_vec()).collect()
}

#[test]
fn smiles_strings() {
    Target { name: "SMILES", seeds: smiles(), words: &SMILES_WORDS, bytes_per_byte: 1 << 12 }.attack(
        20_000,
        |text| {
            let Ok(text) = std::str::from_utf8(text) else { return };
            let _ = Cleanup::ALL.read(text);
            // Reading the SMILES that a molecule writes must give the same molecule.
            if let Ok(molecule) = Molecule::from_smiles(text) {
                let written = molecule.smiles();
                let again =
                    Molecule::from_smiles(&written).unwrap_or_else(|error| panic!("{written}: {error}"));
                assert_eq!(again.smiles(), written);
                assert_eq!(again.formula(), molecule.formula());
                let kekule = Molecule::from_smiles(&molecule.kekule_smiles()).unwrap();
                assert_eq!(kekule.smiles(), written);
            }
        },
    );
}

/// An SD file with one record: a molecule as RDKit writes it, with a charge and a data item.
const SD: &str = "\n     RDKit          2D\n\n  3  2  0  0  0  0  0  0  0  0999 V2000\n    0.0000    \
    0.0000    \
    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n    1.2990    0.7500    0.0000 C   0  0\n    2.5981   \
    -0.0000    0.0000 O   0  5\n  1  2  1  0\n  2  3  2  1\nM  CHG  1   3  -1\nM  END\n>  \
    <name>\nethanal\n\n$$$$\n";

/// A table with quotes that contain line breaks, with an index column, and with mixed separators. The
/// SMILES column is chosen by name.
const TABLE: &str = ",smiles;Name\t|\n0,\"CC(C)O\n\",\"a \"\"b\"\"\"\n1,CCN;\"x\ny\"\n";

#[test]
fn molecule_files() {
    let more = [SD.as_bytes().to_vec(), SD.repeat(3).into_bytes(), TABLE.as_bytes().to_vec()];
    let texts: Vec<Vec<u8>> = smiles().into_iter().chain(more).collect();
    let words = [
        "$$$$\n",
        "M  END\n",
        "M  CHG  1   1   1\n",
        "V2000",
        "V3000",
        "999",
        "\n",
        "  1  2  4  0\n",
        ">  <x>\n",
        "M  RAD",
        "M  ISO",
        "smiles,",
        "\"",
        ";",
        "\u{feff}",
        "D   0",
    ];
    let file = Scratch::new("molecules.sdf");
    Target { name: "molecule files", seeds: texts, words: &words, bytes_per_byte: 1 << 12 }.attack(
        10_000,
        |text| {
            for format in [MoleculeFormat::Smiles, MoleculeFormat::Sd] {
                for cleanup in [Cleanup::default(), Cleanup::ALL] {
                    let mut reader = MoleculeReader::new(text, format).with_cleanup(cleanup);
                    let _ =
                        reader.by_ref().map(|molecule| molecule.map(drop)).collect::<gfn::Result<Vec<()>>>();
                    let _ = reader.report().to_string();
                }
                let mut reader = MoleculeReader::new(text, format).with_column("Name");
                let _ = reader.by_ref().map(|molecule| molecule.map(drop)).collect::<gfn::Result<Vec<()>>>();
            }
            let path = file.with(text);
            let _ = (KnownMolecules::read(path), KnownMolecules::read_some(path), Vocabulary::read(path));
        },
    );
}

#[test]
fn fragment_libraries() {
    let texts = ["C 0,0,0\nc1ccccc1 0,2,4\n# more\nO 0\n", "C1CCNCC1 0,3\nS=C 1\nC#N 0\n"];
    let words = [" 0", ",", "0,0,0,0,0", "\n", "#", "c1ccccc1 0,1,2,3,4,5", "[nH]", " 99999999999"];
    Target { name: "fragment libraries", seeds: seeds(&texts), words: &words, bytes_per_byte: 1 << 12 }
        .attack(12_000, |text| {
            let Ok(text) = std::str::from_utf8(text) else { return };
            let _ = FragmentLibrary::parse(text);
        });
}

#[test]
fn scores() {
    let texts = [
        "[[factors]]\nproperty = \"weight\"\nshape = { window = { least = 100.0, most = 300.0, width = 50.0 \
         } }\n",
        "[[factors]]\nproperty = { similarity = { to = \"Cc1ccccc1O\" } }\npower = \
         2.0\n[[factors]]\nproperty = \"rings\"\nshape = { limit = { most = 2.0 } }\n",
        "[[factors]]\nproperty = \"qed\"\n[[factors]]\nproperty = { substructures = { smarts = \
         [\"[#8][#8]\"] } }\nshape = { limit = { most = 0.0 } }\n",
    ];
    let words = [
        "[[factors]]\n",
        "property = ",
        "\"qed\"",
        "shape = ",
        "{",
        "}",
        "[",
        "]",
        "power = -1.0\n",
        "nan",
        "inf",
        "\"\"\"",
        "c1ccccc1",
    ];
    Target { name: "scores", seeds: seeds(&texts), words: &words, bytes_per_byte: 1 << 14 }.attack(
        120_000,
        |text| {
            let Ok(text) = std::str::from_utf8(text) else { return };
            let Ok(config) = config_file::from_toml::<ScoreConfig>(text) else { return };
            if let Ok(score) = config.build() {
                let molecule = [Molecule::from_smiles("Cc1ccccc1O").unwrap()];
                let _ = score.log_scores(&molecule).map(|scores| assert!(scores[0] < f64::INFINITY));
            }
        },
    );
}

#[test]
fn data_of_variables() {
    let texts = [
        "a,b,c\n0.5,1.25,-3\n1,2,3e-4\n0,0,1\n",
        "a,b,INT\nlow,high,\nhigh,low,a\nlow,low,a;b\n",
        "Cause,Effect\na,b\nb,c\n",
        "\u{feff}x;y\n1;2\n",
        "\"a\",\"b\"\n\"1\",\"2\"\n",
    ];
    let words = [",", ";", "\"", "\n", "INT", "nan", "inf", "1e999", "a;b", "\r\n", "\u{feff}"];
    Target { name: "data of variables", seeds: seeds(&texts), words: &words, bytes_per_byte: 1 << 12 }
        .attack(8_000, |text| {
            let _ = DiscreteData::from_csv(text);
            let _ = DiscreteData::from_csv_with_interventions(text, "INT");
            if let Ok(data) = ContinuousData::from_csv(text) {
                assert!(data.names().len() <= gfn_dags::MAX_NODES);
            }
            let names = ["a", "b", "c"].map(str::to_owned);
            if let Ok(edges) = named_edges(text, &names) {
                assert!(edges.iter().all(|&(from, to)| from < 3 && to < 3));
            }
        });
}

#[test]
fn bayesian_networks() {
    let bif = "network asia { }\nvariable a { type discrete [ 2 ] { yes, no }; }\nvariable b { type discrete \
        [ 3 ] { x, y, z }; }\nprobability ( a ) { table 0.01, 0.99; }\nprobability ( b | a ) { (yes) 0.2, \
        0.3, 0.5; (no) 0.1, 0.1, 0.8; }\n";
    let words = [
        "variable ",
        "type discrete [ ",
        "probability ( ",
        " | ",
        "{",
        "}",
        "table ",
        "(",
        ")",
        ";",
        "/*",
        "*/",
        "//",
        "\"",
        "property x;",
    ];
    Target { name: "Bayesian networks", seeds: seeds(&[bif]), words: &words, bytes_per_byte: 1 << 12 }
        .attack(100_000, |text| {
            let Ok(text) = std::str::from_utf8(text) else { return };
            let _ = DiscreteNetwork::from_bif(text);
        });
}

#[test]
fn tables_of_rewards() {
    let sequence = TokenSequence::variable(4, 0, 3).unwrap();
    let alphabet = Alphabet::dna();
    let texts = ["sequence,reward\nACG,0.5\nA,1\n,2e-3\n", "\u{feff}sequence,reward\r\nTTT,3\r\n"];
    let words = ["sequence,reward\n", ",", "A", "C", "G", "T", "\n", "-1", "inf", "1e-320"];
    Target { name: "tables of rewards", seeds: seeds(&texts), words: &words, bytes_per_byte: 1 << 12 }
        .attack(50_000, |text| {
            let Ok(text) = std::str::from_utf8(text) else { return };
            let _ = (
                TableReward::parse(&sequence, &alphabet, text, Some(1e-3)),
                TableReward::parse(&sequence, &alphabet, text, None),
            );
        });
}

#[test]
fn newick() {
    let rules = PhyloTree::new(5).unwrap();
    let texts = ["((0,2),((1,4),3));", "((3:0.5,1:1e-2)inner:2,((2,0),4));"];
    let words = ["(", ")", ",", ";", ":0.1", "0", "4", "((((", "a"];
    Target { name: "Newick", seeds: seeds(&texts), words: &words, bytes_per_byte: 1 << 12 }.attack(
        100_000,
        |text| {
            let Ok(text) = std::str::from_utf8(text) else { return };
            if let Ok(row) = rules.read_newick(text) {
                assert_eq!(rules.read_newick(&rules.newick(&row)).unwrap(), row);
            }
        },
    );
}
