//! Fuzz tests of the readers of checkpoints and data sets, and of files of weights and tables from other
//! programs.

use std::io::Write;
use std::time::Duration;

use crate::attack::Target;
use crate::readers::Scratch;
use flate2::{Compression, write::GzEncoder};
use gfn::Rng;
use gfn::examples::Chain;
use gfn::nn::Parameters;
use gfn::policy::UniformPolicy;
use gfn::rollout::{Sampler, Trajectories};
use gfn::train::Checkpoint;
#[cfg(feature = "descriptors")]
use gfn_molecules::{AccessibilityTable, Patterns};
use gfn_molecules::{ExternalScorer, SehProxy};
use serde_json::{Value, json};
use tch::{Device, Kind, Tensor};

const FILES: [&str; 2] = ["manifest.json", "model.safetensors"];
const WORDS: [&str; 12] = [
    "\"F32\"",
    "\"I64\"",
    "\"BOOL\"",
    "\"shape\":[",
    "\"data_offsets\":[",
    "{",
    "}",
    "[",
    "]",
    ",",
    "18446744073709551615",
    "null",
];

/// Attacks the files of a folder one by one. The manifest has a checksum of the tensors, which would reject
/// every changed tensor. The function therefore corrects the checksum after an edit: the error of the first
/// try to load contains the right checksum.
fn attack_folder(names: [&str; 2], files: [&str; 2], folder: &Scratch, load: impl Fn() -> gfn::Result<()>) {
    load().unwrap();
    let paths = files.map(|file| folder.0.join(file));
    let good = paths.each_ref().map(|path| std::fs::read(path).unwrap());
    let attacked = |k: usize| Target {
        name: names[k],
        seeds: vec![good[k].clone()],
        words: &WORDS,
        bytes_per_byte: 1 << 10,
    };
    attacked(0).attack(15_000, |text| {
        std::fs::write(&paths[0], text).unwrap();
        let _ = load();
    });
    attacked(1).attack(15_000, |bytes| {
        let mut manifest: Value = serde_json::from_slice(&good[0]).unwrap();
        manifest["bytes"] = json!(bytes.len());
        std::fs::write(&paths[1], bytes).unwrap();
        let write =
            |manifest: &Value| std::fs::write(&paths[0], serde_json::to_vec(manifest).unwrap()).unwrap();
        write(&manifest);
        let Err(error) = load() else { return };
        let message = error.to_string();
        if message.contains("checksum") {
            // The message is "the checksum is FOUND, but the manifest says EXPECTED: REMEDY".
            let found =
                message.split(", but the manifest says ").next().and_then(|text| text.split(' ').next_back());
            manifest["checksum"] = json!(found.unwrap());
            write(&manifest);
            let again = load();
            assert!(
                again.as_ref().err().is_none_or(|error| !error.to_string().contains("checksum")),
                "{again:?}"
            );
        }
    });
}

#[test]
fn checkpoints() {
    let folder = Scratch::new("checkpoint");
    let mut parameters = Parameters::new(Device::Cpu, Kind::Float);
    let _ = parameters.scope(&mut Rng::seeded(0)).constant("weight", &[2, 1], 1.0);
    let counts = vec![("steps".to_owned(), Tensor::from_slice(&[3i64]))];
    let checkpoint = Checkpoint::new(&parameters, 3, json!({ "seed": 0 })).unwrap();
    checkpoint.with("adam", counts).save(&folder.0).unwrap();
    attack_folder(["manifests of checkpoints", "checkpoints"], FILES, &folder, || {
        Checkpoint::load(&folder.0).map(drop)
    });
}

#[test]
fn data_sets() {
    let env = Chain::new(5);
    let folder = Scratch::new("data");
    Sampler::new(&env, &UniformPolicy)
        .forward(4, &mut Rng::seeded(0))
        .unwrap()
        .save(&env, &folder.0)
        .unwrap();
    let files = ["manifest.json", "data.safetensors"];
    attack_folder(["manifests of data sets", "data sets"], files, &folder, || {
        Trajectories::load(&env, &folder.0).map(drop)
    });
}

/// Pickles that Python wrote: a list of lists of numbers, and a list with a numpy array.
const PICKLES: [&[u8]; 2] = [
    b"\x80\x02]q\x00(]q\x01(G?\xe0\x00\x00\x00\x00\x00\x00K\x01K\x02e]q\x02(G\xbf\xf4\x00\x00\x00\x00\x00\
    \x00\x8a\x05\xff\xff\xff\xff\x00ee.",
    b"\x80\x02]q\x00cnumpy._core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85q\x03c_codec\
    s\nencode\nq\x04X\x01\x00\x00\x00bq\x05X\x06\x00\x00\x00latin1q\x06\x86q\x07Rq\x08\x87q\tRq\n(K\x01K\
    \x02K\x02\x86q\x0bcnumpy\ndtype\nq\x0cX\x02\x00\x00\x00f4q\r\x89\x88\x87q\x0eRq\x0f(K\x03X\x01\x00\x00\
    \x00<q\x10NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x11b\x89h\x04X\x11\x00\x00\x00\x00\x00\x00\x00\
    \x00\x00\xc2\x80?\x00\x00\x00@\x00\x00@@q\x12h\x06\x86q\x13Rq\x14tq\x15ba.",
];

#[test]
fn pickles_and_tables() {
    let file = Scratch::new("table");
    let text: &[u8] = b"0.5 1 2\n-1.25 4294967295\n";
    let seeds = PICKLES.into_iter().chain([text]).map(<[u8]>::to_vec).collect();
    let words = ["](", "e", "]", "}", "q\u{0}", "h\u{0}", "(K\u{1}K\u{2}t", "\u{1e}\n", " ", "nan"];
    let read = |path: &std::path::Path| {
        let _ = SehProxy::load(path, Device::Cpu);
        #[cfg(feature = "descriptors")]
        let _ = AccessibilityTable::read(path);
    };
    Target { name: "pickles and tables", seeds, words: &words, bytes_per_byte: 1 << 12 }.attack(
        20_000,
        |bytes| {
            std::fs::write(&file.0, bytes).unwrap();
            read(&file.0);
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(bytes).unwrap();
            std::fs::write(&file.0, packed.finish().unwrap()).unwrap();
            read(&file.0);
        },
    );
}

#[cfg(feature = "descriptors")]
#[test]
fn patterns() {
    let file = Scratch::new("patterns");
    let texts = [
        "[#8][#8] peroxide\n# a comment\nc1ccccc1\n",
        "\"[N;X3;!$(N-C=O)]\",\"amine\"\n[C;R2]1~*~*~1 ring\n[$([OX2H])] alcohol\n",
    ];
    let words = [
        "[",
        "]",
        "$(",
        ")",
        "!",
        ";",
        ",",
        "&",
        "~",
        "@",
        "1",
        "%10",
        "[#6]",
        "(",
        "R",
        "\n",
        "\"",
        "999999999",
        "[$([$(",
    ];
    let seeds = texts.map(|text| text.as_bytes().to_vec()).to_vec();
    Target { name: "patterns", seeds, words: &words, bytes_per_byte: 1 << 12 }.attack(30_000, |bytes| {
        std::fs::write(&file.0, bytes).unwrap();
        let _ = Patterns::read(&file.0);
    });
}

/// Tests the answers of an external scoring program. The program may write anything, and the result must be
/// a score or an error.
#[test]
fn answers_of_a_program() {
    let file = Scratch::new("answers");
    let words = ["\n", "nan", "inf", "1e999", " ", "0.5\n0.5\n", "\u{0}", "\r\n", "-"];
    let seeds = vec![b"0.5\n1e-3\n".to_vec(), b"12\n-3.25\n".to_vec()];
    let smiles = ["C", "CC"].map(str::to_owned);
    Target { name: "answers of a program", seeds, words: &words, bytes_per_byte: 1 << 12 }.attack(
        2_000,
        |bytes| {
            std::fs::write(&file.0, bytes).unwrap();
            let scorer =
                ExternalScorer::new(["cat", file.0.to_str().unwrap()], Duration::from_secs(5)).unwrap();
            if let Ok(scores) = scorer.scores(&smiles) {
                assert!(scores.len() == 2 && scores.iter().all(|score| score.is_finite()));
            }
        },
    );
}
