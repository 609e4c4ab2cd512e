//! Tests of tables of molecules with separators, quotes and headers; of files that are compressed, begin with
//! a byte-order mark or aren't text; and of files without a molecule.

use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use gfn::Error;
use gfn_molecules::fragments::{FragmentLibrary, Vocabulary};
use gfn_molecules::{
    Cleanup, KnownMolecules, Molecule, MoleculeFormat, MoleculeReader, ReadReport, SkipReason,
};

fn read_all(text: &[u8], column: Option<&str>) -> gfn::Result<(Vec<String>, ReadReport)> {
    let mut reader = MoleculeReader::new(text, MoleculeFormat::Smiles).with_cleanup(Cleanup::ALL);
    if let Some(column) = column {
        reader = reader.with_column(column);
    }
    let smiles = reader.by_ref().map(|molecule| Ok(molecule?.smiles())).collect::<gfn::Result<_>>()?;
    Ok((smiles, reader.report().clone()))
}

fn canonical(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| Molecule::from_smiles(text).unwrap().smiles()).collect()
}

const ZINC: &str = "smiles,logP,qed,SAS\n\"CC(C)(C)c1ccc2occ(CC(=O)Nc3ccccc3F)c2c1\n\",5.05,0.7,2.08\n\
                    \"C[C@@H]1CC(Nc2cncc(-c3nncn3C)c2)C[C@@H](C)C1\n\",3.11,0.93,3.43\n";

/// Tables as real files have them. Each entry is the text, the name of the column to read, and the expected
/// molecules.
const TABLES: [(&str, Option<&str>, &[&str]); 35] = [
    // In these tables each line begins with a SMILES.
    ("CCO\nCCN\n", None, &["CCO", "CCN"]),
    ("CCO ethanol\nCCN\tethylamine\nCCF,1\nCCCl;2\nCCBr|3\n", None, &["CCO", "CCN", "CCF", "CCCl", "CCBr"]),
    ("  CCO x\n\n\tCCN y\r\n", None, &["CCO", "CCN"]),
    ("CCO |$;;R1$| name\nC[C@H](N)O |&1:1| racemic\n", None, &["CCO", "C[C@H](N)O"]),
    ("\"CCO\",\"1\"\n\"CC(=O)O\",\"2\"\n", None, &["CCO", "CC(=O)O"]),
    ("\"CCO\";1\n\"CCN\";\"a; b\"\n", None, &["CCO", "CCN"]),
    ("CCO,\"a name\nCCN,\"another\"\n", None, &["CCO", "CCN"]),
    ("# a comment, with smiles\nCCO ethanol\n# more\nCCN\n", None, &["CCO", "CCN"]),
    ("name\nC\nN\n", None, &["C", "N"]),
    // In these tables a header names the first column as that of the SMILES.
    ("smiles\nCCO\nCCN x\n", None, &["CCO", "CCN"]),
    ("SMILES Name\nCCO ethanol\nCCN  ethylamine\n", None, &["CCO", "CCN"]),
    ("smiles,y\nCCO,1\nCCN,2\n", None, &["CCO", "CCN"]),
    ("smiles;y\nCCO;1\nCCN;2\n", None, &["CCO", "CCN"]),
    ("smiles,\nCCO,\nCCN,\n", None, &["CCO", "CCN"]),
    ("SMILES,SPLIT\r\nCCO,train\r\nCCN,test\r\n", None, &["CCO", "CCN"]),
    ("\"smiles\",\"y\"\n\"CCO\",\"1\"\n\"CC(=O)O\",\"2\"\n", None, &["CCO", "CC(=O)O"]),
    (
        ZINC,
        None,
        &["CC(C)(C)c1ccc2occ(CC(=O)Nc3ccccc3F)c2c1", "C[C@@H]1CC(Nc2cncc(-c3nncn3C)c2)C[C@@H](C)C1"],
    ),
    // In these tables a header names another column as that of the SMILES.
    (",smiles,logP\n0,CCO,0.1\n1,CCN,0.2\n", None, &["CCO", "CCN"]),
    ("\tsmiles\tlogP\n0\tCCO\t0.1\n1\tCCN\t0.2\n", None, &["CCO", "CCN"]),
    ("mol_id,smiles,A,B,C\ngdb_1,C,157.7,157.7,157.7\ngdb_2,N,293.6,191.3,1\n", None, &["C", "N"]),
    (
        "\"Molecule ChEMBL ID\";\"Name\";\"Smiles\"\n\"CHEMBL1\";\"\";\"CCO\"\n\"CHEMBL2\";\"a;b\";\"CCN\"\n",
        None,
        &["CCO", "CCN"],
    ),
    ("chembl_id\tcanonical_smiles\tinchi\nCHEMBL1\tCCO\tInChI=1S/x\nCHEMBL2\tCCN\t\n", None, &["CCO", "CCN"]),
    ("id|Canonical SMILES\n1|CCO\n2|CCN\n", None, &["CCO", "CCN"]),
    ("zinc_id smiles\nZINC1 CCO\nZINC2   CCN\n", None, &["CCO", "CCN"]),
    ("CANONICAL_SMILES,SMILES\nC,CCO\nC,CCN\n", None, &["CCO", "CCN"]),
    (
        "id,name,smiles\n1,\"a \"\"b\"\", c\",CCO\n2,\"two\nlines\",CCN\n3,5\" nail,CCF\n",
        None,
        &["CCO", "CCN", "CCF"],
    ),
    ("id, \"smiles\" ,y\n1, \"CCO\" ,2\n2,  CCN,3\n", None, &["CCO", "CCN"]),
    ("# made today\nid,smiles\n1,CCO\n", None, &["CCO"]),
    // In these tables the caller selects the column by its name.
    ("id,ligand,smiles\n1,CCO,C\n2,CCN,N\n", Some("ligand"), &["CCO", "CCN"]),
    ("id,smiles,isosmiles\n1,C,CCO\n", Some("isosmiles"), &["CCO"]),
    ("structure\nCCO\nCCN name\n", Some("structure"), &["CCO", "CCN"]),
    ("my structure;y\nCCO;1\nCCN;2\n", Some("my structure"), &["CCO", "CCN"]),
    ("\"a,b\",\"c\"\n1,CCO\n", Some("c"), &["CCO"]),
    ("N,C,O\nCC,CCO,CCN\n", Some("C"), &["CCO"]),
    ("# a comment\nname\tmol\nx\tCCO\n", Some("mol"), &["CCO"]),
];

#[test]
fn tables_are_read_by_their_column() {
    for (text, column, expected) in TABLES {
        // A byte-order mark before the text must make no difference.
        for marked in [text.to_owned(), format!("\u{feff}{text}")] {
            let (smiles, report) =
                read_all(marked.as_bytes(), column).unwrap_or_else(|error| panic!("{text:?}: {error}"));
            assert_eq!(smiles, canonical(expected), "{text:?}");
            // A header must not count as a skipped line. Comments, and a header without a column of SMILES,
            // must count.
            let skipped = text.lines().filter(|line| line.starts_with('#') || *line == "name").count();
            assert_eq!(report.n_skipped(), skipped, "{text:?}: {report}");
        }
    }
}

#[test]
fn rows_that_are_too_short_or_open_are_skipped_with_their_line() {
    let text = "id,smiles\n1,CCO\n2\n3,\n4,\"CCN\n5,CCF\n";
    let (smiles, report) = read_all(text.as_bytes(), None).unwrap();
    assert_eq!(smiles, canonical(&["CCO"]));
    let examples = &report.skipped[&SkipReason::Syntax].examples;
    assert_eq!(examples.iter().map(|example| example.line).collect::<Vec<_>>(), [3, 4, 5]);
    assert!(examples[2].error.to_string().contains("a quote that opens a field isn't closed"), "{report}");
    // After a quote that is never closed, at most one long line may be lost.
    let text = format!("id,smiles\n1,\"CCO\n{}9,CCN\n", "2,CCC\n".repeat(20_000));
    let (smiles, report) = read_all(text.as_bytes(), None).unwrap();
    assert!(smiles.len() > 9_000 && report.skipped[&SkipReason::TooLarge].count == 1, "{report}");
    // A quote that opens a tab-separated field without closing it must be read as a part of the text.
    let text = "name\tsmiles\n\"odd\tCCO\n\"a \"\"name\"\"\"\tCCC\nplain\tCCN\n";
    assert_eq!(read_all(text.as_bytes(), None).unwrap().0, canonical(&["CCO", "CCC", "CCN"]));
}

fn refused(text: &[u8], format: MoleculeFormat, column: Option<&str>) -> String {
    let mut reader = MoleculeReader::new(text, format).with_cleanup(Cleanup::ALL);
    if let Some(column) = column {
        reader = reader.with_column(column);
    }
    let error = match reader.next() {
        Some(Err(error @ Error::File { .. })) => error.to_string(),
        other => panic!("{other:?} of {:?}", String::from_utf8_lossy(text)),
    };
    // The reader must return the error only once.
    assert!(reader.next().is_none());
    error
}

#[test]
fn a_column_that_is_not_there_is_an_error() {
    for text in ["smiles,y\nCCO,1\n", "CCO\nCCN\n", "id;Structure\n1;CCO\n"] {
        let message = refused(text.as_bytes(), MoleculeFormat::Smiles, Some("structure"));
        assert!(
            message.contains("has no column \"structure\": line 1 is") && message.contains("first line"),
            "{message}"
        );
    }
    let message = refused(b"\n\n\n", MoleculeFormat::Sd, Some("smiles"));
    assert!(message.contains("an SD file, which has no columns"), "{message}");
}

const EMPTY_RECORD: &str = "\n\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n$$$$\n";

#[test]
fn a_file_without_a_molecule_is_an_error() {
    for (text, format, part) in [
        ("", MoleculeFormat::Smiles, "the file has no molecule: give a SMILES"),
        ("\n \n\r\n", MoleculeFormat::Smiles, "the file has no molecule"),
        ("smiles,y\n", MoleculeFormat::Smiles, "the file has no molecule"),
        ("", MoleculeFormat::Sd, "the file has no molecule"),
        (
            "id,structure\n1,CCO\n2,CCN\n",
            MoleculeFormat::Smiles,
            "none of its 3 lines or records is read as a molecule; line 1, \"id\"",
        ),
        ("ZINC1 CCO\nZINC2 CCN\n", MoleculeFormat::Smiles, "line 1, \"ZINC1\""),
        ("{\"smiles\": [\"CCO\"]}", MoleculeFormat::Smiles, "none of its 1 lines"),
        ("[Pt]\n[Fe]\n", MoleculeFormat::Smiles, "line 1, \"[Pt]\""),
        ("InChI=1S/CH4O/c1-2/h2H,1H3\n", MoleculeFormat::Smiles, "none of its 1"),
        (EMPTY_RECORD, MoleculeFormat::Sd, "none of its 1 lines or records"),
        ("CCO\nCCN\n", MoleculeFormat::Sd, "the record ends before"),
    ] {
        let message = refused(text.as_bytes(), format, None);
        assert!(
            message.contains(part) && message.contains("column `smiles` or the one that `column` names"),
            "{text:?}: {message}"
        );
    }
    let path = std::env::temp_dir().join(format!("gfn-no-molecule-{}.csv", std::process::id()));
    std::fs::write(&path, "id,structure\n1,CCO\n").unwrap();
    for error in [
        KnownMolecules::read(&path).unwrap_err(),
        KnownMolecules::read_some(&path).unwrap_err(),
        Vocabulary::read(&path).unwrap_err(),
        FragmentLibrary::from_data(&path, 3).unwrap_err(),
    ] {
        assert!(matches!(&error, Error::File { path: of, .. } if *of == path), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gfn-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzipped_files_are_read_as_what_is_in_them() {
    let folder = Folder::new("gzipped");
    let ethanol = Molecule::from_smiles("CCO").unwrap().sdf_record("ethanol", &[]).unwrap();
    let many = "CCO ethanol\nCCN\n".repeat(20_000);
    for (name, bytes, n) in [
        ("two.sdf.gz", gzipped(&ethanol.repeat(2)), 2),
        ("TWO.SDF.GZ", gzipped(&ethanol.repeat(2)), 2),
        ("one.mol.gz", gzipped(&ethanol), 1),
        ("many.smi.gz", gzipped(&many), 40_000),
        ("table.csv.gz", gzipped("\u{feff}id;smiles\n1;CCO\n2;CCN\n"), 2),
        // The first of the next two files is compressed although its name lacks the ending `.gz`. The second
        // one consists of two gzip members.
        ("plain.smi", gzipped("CCO\n"), 1),
        ("members.smi.gz", [gzipped("CCO\n"), gzipped("CCN\nCCF\n")].concat(), 3),
        // The name of this file ends in `.gz`, but the file is no longer compressed.
        ("unpacked.smi.gz", b"CCO\nCCN\n".to_vec(), 2),
    ] {
        let path = folder.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        let molecules: Vec<Molecule> =
            MoleculeReader::open(&path).unwrap().collect::<gfn::Result<_>>().unwrap();
        assert_eq!(molecules.len(), n, "{name}");
        assert_eq!(molecules[0].smiles(), canonical(&["CCO"])[0], "{name}");
    }
    assert_eq!(KnownMolecules::read(folder.0.join("table.csv.gz")).unwrap().len(), 2);
    // This compressed file is truncated and must be refused.
    let path = folder.0.join("cut.smi.gz");
    let bytes = gzipped(&many);
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let last = MoleculeReader::open(&path).unwrap().last().unwrap();
    assert!(matches!(&last, Err(Error::Io { path: of, .. }) if *of == path), "{last:?}");
}

#[test]
fn files_that_are_no_text_are_refused_by_name() {
    let folder = Folder::new("no-text");
    let utf16: Vec<u8> = "\u{feff}smiles,y\nCCO,1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let swapped: Vec<u8> = utf16.chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect();
    let cases: [(&[u8], &str); 8] = [
        (&gzipped("CCO\n"), "compressed by gzip"),
        (b"PK\x03\x04\x14\0CCO", "a zip archive, such as a workbook (.xlsx)"),
        (b"BZh91AY&SY\0", "compressed by bzip2"),
        (b"\xfd7zXZ\0\0\x04", "compressed by xz"),
        (b"\x28\xb5\x2f\xfd\x04", "compressed by zstd"),
        (b"PAR1\x15\x04", "a Parquet file"),
        (&utf16, "text in UTF-16"),
        (&swapped, "text in UTF-16"),
    ];
    for (bytes, what) in cases {
        for format in [MoleculeFormat::Smiles, MoleculeFormat::Sd] {
            let message = refused(bytes, format, None);
            assert!(
                message.contains(what) && message.contains("unpack the file, or save it as text"),
                "{message}"
            );
        }
        let path = folder.0.join("molecules.smi");
        std::fs::write(&path, bytes).unwrap();
        let first = MoleculeReader::open(&path).unwrap().next().unwrap();
        assert_eq!(first.is_ok(), what.contains("gzip"), "{what}: {first:?}");
    }
}

#[test]
fn the_ending_of_a_name_is_that_of_the_unpacked_file() {
    for (name, format) in [
        ("a.smi", MoleculeFormat::Smiles),
        ("a.sdf", MoleculeFormat::Sd),
        ("a.SD", MoleculeFormat::Sd),
        ("a.mol.gz", MoleculeFormat::Sd),
        ("a.csv.gz", MoleculeFormat::Smiles),
        ("sdf.gz", MoleculeFormat::Smiles),
        ("a.gz", MoleculeFormat::Smiles),
        ("a.sdf.txt", MoleculeFormat::Smiles),
    ] {
        assert_eq!(MoleculeFormat::from_path(name.as_ref()), format, "{name}");
    }
}
