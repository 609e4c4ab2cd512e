//! Tests of the reader of samples for `reproduce judge`. Each line must count as a sample, as an invalid
//! sample (if it isn't an object of the task), or as a header. No line may be ignored silently.

#[allow(dead_code, unreachable_pub, reason = "the examples' module, used as it is")]
#[path = "../examples/reproduce/judging/samples.rs"]
mod samples;

use std::fs;
use std::path::Path;

use gfn::{Error, Result};
use samples::{fasta, has_graph6, read_text, with_numbers};

use crate::trainers::Folder;

/// The samples in a text, the number of invalid samples, and notes for the user.
struct ReadSamples<T> {
    rows: Vec<T>,
    n_invalid: usize,
    notes: Vec<String>,
}

fn read_samples<T>(text: &str, numbers: bool, row: &dyn Fn(&str) -> Result<T>) -> ReadSamples<T> {
    let (rows, n_invalid, notes) = samples::samples(text, numbers, row);
    ReadSamples { rows, n_invalid, notes }
}

/// Reads points of a two-dimensional grid from a text.
fn points(text: &str) -> ReadSamples<Vec<u16>> {
    read_samples(text, true, &|line| {
        let words = line.split([',', ' ']).filter(|word| !word.is_empty());
        let point: Option<Vec<u16>> = words.map(|word| word.parse().ok()).collect();
        point
            .filter(|point| point.len() == 2)
            .ok_or_else(|| Error::config("a point", line, "two whole numbers"))
    })
}

/// Reads molecules from a text, for a task that has only two molecules.
fn molecules(text: &str) -> ReadSamples<String> {
    read_samples(text, false, &|line| {
        let word = line.split_whitespace().next().unwrap_or_default();
        let is_known = ["CO", "CN"].contains(&word);
        if is_known { Ok(word.to_owned()) } else { Err(Error::config("a molecule", word, "CO or CN")) }
    })
}

#[test]
fn each_line_is_a_sample_an_invalid_one_or_a_header() {
    // A case has a text, the number of valid samples, the number of invalid samples, and a part of the
    // expected note.
    let cases = [
        ("0 0\n3 3\n", 2, 0, ""),
        ("0 0\r\n\r\n3 3\r\n", 2, 0, ""),
        ("x y\n0 0\n3 3\n", 2, 0, "read as a header"),
        ("x0,x1\n0,0\n", 1, 0, "read as a header"),
        ("\"a\",\"b\"\n0,0\n", 1, 0, "read as a header"),
        ("9 9 9\n0 0\n3 3\n", 2, 1, "line 1 counts as an invalid sample"),
        ("-1 0\n0 0\n", 1, 1, "line 1 counts as an invalid sample"),
        ("0.0 0.0\n3 3\n", 1, 1, "line 1 counts as an invalid sample"),
        ("[0, 0]\n3 3\n", 1, 1, "line 1 counts as an invalid sample"),
        ("nan nan\n3 3\n", 1, 1, "line 1 counts as an invalid sample"),
        ("inf 0\n3 3\n", 1, 1, "line 1 counts as an invalid sample"),
        ("None\n3 3\n", 1, 1, "line 1 counts as an invalid sample"),
        ("0 0\nx y\n1 2 3\n3 3\n", 2, 2, "line 2 counts as an invalid sample"),
        // The header that pandas writes for unnamed columns looks like a sample. A note must tell the user.
        ("0,1\n3,3\n", 2, 0, "line 1, \"0,1\", counts as a sample: remove this line if it is a header"),
        ("0 1\n3 3\n", 2, 0, ""),
        (",0,1\n0,3,3\n1,2,2\n", 1, 2, "line 1, \",0,1\", counts as a sample"),
    ];
    for (text, n_valid, n_invalid, note) in cases {
        let samples = points(text);
        assert_eq!(
            (samples.rows.len(), samples.n_invalid),
            (n_valid, n_invalid),
            "{text:?}: {:?}",
            samples.notes
        );
        let notes = samples.notes.join("; ");
        assert!(notes.contains(note) && notes.is_empty() == note.is_empty(), "{text:?}: {notes}");
    }
    let cases = [
        ("CO\nCN\n", 2, 0),
        ("smiles\nCO\n", 1, 0),
        ("SMILES,count\nCO\n", 1, 0),
        ("canonical_smiles\nCO\n", 1, 0),
        ("object\nCO\n", 1, 0),
        // A molecule that isn't part of the task counts as invalid.
        ("CF\nCO\nCN\n", 2, 1),
        ("CNO\nCO\nCC\n", 1, 2),
        ("CO\nsmiles\n", 1, 1),
        ("CCCCCC\n", 0, 1),
        ("", 0, 0),
    ];
    for (text, n_valid, n_invalid) in cases {
        let samples = molecules(text);
        assert_eq!(
            (samples.rows.len(), samples.n_invalid),
            (n_valid, n_invalid),
            "{text:?}: {:?}",
            samples.notes
        );
    }
}

/// Tests a byte-order mark at the beginning of a file. An earlier version took the first sample for a header
/// because of this mark.
#[test]
fn a_byte_order_mark_takes_no_sample_away() -> Result<()> {
    let folder = Folder::new("judged");
    let path = folder.join("samples.txt");
    fs::write(&path, "\u{feff}0 0\n3 3\n1 1\n").unwrap();
    let samples = points(&read_text(&path)?);
    assert_eq!((samples.rows, samples.n_invalid), (vec![vec![0, 0], vec![3, 3], vec![1, 1]], 0));
    assert!(samples.notes.is_empty());
    assert!(matches!(read_text(&folder.join("none.txt")), Err(Error::Io { .. })));
    Ok(())
}

#[test]
fn alignments_are_fasta_or_named() {
    let path = Path::new("a.txt");
    let species = fasta(path, ";a comment\n>A first\r\nACG\r\n; another\r\nT\r\n\r\n>B\nACGA\n").unwrap();
    let expected =
        [("A first", "ACGT"), ("B", "ACGA")].map(|(name, letters)| (name.to_owned(), letters.to_owned()));
    assert_eq!(species, expected);
    for (text, format) in [
        ("4 4\nA ACGT\nB ACGA\nC TCGA\nD TCGT\n", "the alignment is PHYLIP"),
        ("#NEXUS\nbegin data;\nmatrix\nA ACGT\n;\nend;\n", "the alignment is NEXUS"),
        ("#nexus\n", "the alignment is NEXUS"),
        ("CLUSTAL W (1.82)\n\nA ACGT\n", "the alignment is not FASTA"),
        ("ACGT\nACGA\n", "the alignment is not FASTA"),
        ("", "the alignment is not FASTA"),
    ] {
        let message = fasta(path, text).unwrap_err().to_string();
        assert!(message.contains(format) && message.contains("in the FASTA format"), "{text:?}: {message}");
    }
}

#[test]
fn titles_of_species_are_unique() {
    let path = Path::new("a.fasta");
    assert_eq!(fasta(path, ">Homo sapiens\nAC\n>Homo erectus\nAG\n").unwrap()[1].0, "Homo erectus");
    for text in [">Homo sapiens\nAC\n> Homo sapiens\nAG\n", ">\nAC\n"] {
        let message = fasta(path, text).unwrap_err().to_string();
        assert!(message.contains("is empty or not unique"), "{text:?}: {message}");
    }
}

/// Tests files of graph6 lines that have an invalid line with a blank. An earlier version took such a file
/// for an edge list.
#[test]
fn one_line_of_graph6_makes_a_file_graph6() {
    for text in ["Bw\nnot a graph\n", "graph\n\nno graph\n&BP_ \n", ">>graph6<<\nBw\n"] {
        assert!(has_graph6(text), "{text:?}");
    }
    for text in ["graph undirected 2\nedge 0 1\n", "# a b\n0\n1 2\n", "0 1\n", "", ">>graph6<<\n"] {
        assert!(!has_graph6(text), "{text:?}");
    }
}

#[test]
fn trees_may_name_species_as_the_alignment_does() {
    let names = ["A", "B", "Homo sapiens", "D"].map(str::to_owned);
    for (tree, expected) in [
        ("((A,B),('Homo sapiens',D));", "((0,1),(2,3));"),
        ("( ( A:0.1 , B ) x , (D:1e-2,Homo sapiens)A:2 );", "( (0:0.1 ,1) x , (3:1e-2,2)A:2 );"),
        ("((0,1),(2,3));", "((0,1),(2,3));"),
        ("((A,C),(B,D));", "((0,C),(1,3));"),
        ("D", "3"),
    ] {
        assert_eq!(with_numbers(tree, &names), expected, "{tree}");
    }
    let names = ["Homo sapiens", "Homo erectus", "Pan paniscus"].map(str::to_owned);
    let tree = "((Homo erectus,Pan),'Homo sapiens');";
    assert_eq!(with_numbers(tree, &names), "((1,2),0);");
    assert_eq!(with_numbers("((Homo,Pan),1);", &names), "((Homo,2),1);");
    // Numbers in a tree must be read as indices into the list of names, even if the names are numbers, too.
    assert_eq!(with_numbers("((0,1),2);", &["2", "1", "0"].map(str::to_owned)), "((0,1),2);");
}
