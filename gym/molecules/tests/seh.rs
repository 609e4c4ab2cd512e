//! Tests of the sEH proxy: comparison with its formulas for random weights, and with the published network
//! for the published weights.

use std::path::{Path, PathBuf};
use std::time::Instant;

use gfn::Error;
use gfn_molecules::{Factor, Molecule, MoleculeScore, Property, ScoreConfig, SehProxy};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

const SHAPES: [&[i64]; 22] = [
    &[64, 71],
    &[64],
    &[64, 64],
    &[64],
    &[128, 4],
    &[128],
    &[4096, 128],
    &[4096],
    &[192, 64],
    &[192, 64],
    &[192],
    &[192],
    &[512, 64],
    &[512],
    &[105, 512],
    &[105],
    &[256, 128],
    &[256, 64],
    &[256],
    &[256],
    &[1, 128],
    &[1],
];

/// Returns random weights of about the same size as the published weights.
fn weights() -> Vec<Tensor> {
    tch::manual_seed(1);
    let of = |shape: &&[i64]| {
        Tensor::randn(*shape, (Kind::Float, Device::Cpu)) * 0.3 / (shape[shape.len() - 1] as f64).sqrt()
    };
    SHAPES.iter().map(of).collect()
}

/// The path of a temporary file, which is deleted when the `Saved` is dropped.
struct Saved(PathBuf);

impl Saved {
    fn new(name: &str, arrays: &[Tensor]) -> Self {
        let path = std::env::temp_dir().join(format!("gfn-seh-{name}-{}.npz", std::process::id()));
        let named: Vec<_> = arrays.iter().enumerate().map(|(k, array)| (format!("p{k:02}"), array)).collect();
        Tensor::write_npz(&named, &path).unwrap();
        Self(path)
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn read(smiles: &str) -> Molecule {
    Molecule::from_smiles(smiles).unwrap()
}

/// RDKit's features of the atoms of acetamide, written by hand. Each row is the atomic number, the index of
/// the element among those that the proxy distinguishes, 1 for aromatic, 1 for sp, 1 for sp2, 1 for sp3, and
/// the number of hydrogens.
const ACETAMIDE: [[f64; 7]; 4] = [
    [6.0, 1.0, 0.0, 0.0, 0.0, 1.0, 3.0],
    [6.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
    [8.0, 3.0, 0.0, 0.0, 1.0, 0.0, 0.0],
    // The nitrogen is sp2 although it has three neighbours, because it is next to the double bond.
    [7.0, 2.0, 0.0, 0.0, 1.0, 0.0, 2.0],
];
const BONDS: [(usize, usize, i64); 3] = [(0, 1, 0), (1, 2, 1), (1, 3, 0)];

/// Computes the output of the network by its formulas, one molecule and one directed bond at a time, in
/// double precision.
fn by_hand(weights: &[Tensor], atoms: &[[f64; 7]], bonds: &[(usize, usize, i64)]) -> f64 {
    let w = |k: usize| weights[k].to_kind(Kind::Double);
    let linear = |x: &Tensor, k: usize| w(k).matmul(x) + w(k + 1);
    let n = atoms.len();
    let feature = |atom: &[f64; 7]| {
        let mut row = [0.0; 71];
        (row[atom[1] as usize], row[13 + atom[0] as usize]) = (1.0, 1.0);
        row[9..14].copy_from_slice(&atom[2..]);
        Tensor::from_slice(&row)
    };
    let mut arrows: Vec<(usize, usize, i64)> =
        bonds.iter().flat_map(|&(a, b, kind)| [(a, b, kind), (b, a, kind)]).collect();
    if arrows.is_empty() {
        arrows.push((0, 0, 4));
    }
    let mut h: Vec<Tensor> = atoms.iter().map(|atom| linear(&feature(atom), 0).leaky_relu()).collect();
    for _ in 0..12 {
        let message = |a: usize| {
            let to = arrows.iter().filter(|arrow| arrow.1 == a);
            let each = to.map(|&(b, _, kind)| {
                // A molecule with a single atom has a loop from this atom to itself. The loop's type, 4,
                // isn't one of the four bond types, so the loop's four bond features are all 0.
                let mut bond = [0.0; 4];
                if let Some(one) = bond.get_mut(kind as usize) {
                    *one = 1.0;
                }
                let made = linear(&linear(&Tensor::from_slice(&bond), 4).leaky_relu(), 6).view([64, 64]);
                h[b].matmul(&made)
            });
            let each: Vec<Tensor> = each.collect();
            let mean = Tensor::stack(&each, 0).mean_dim(Some([0i64].as_slice()), false, Kind::Double);
            (mean + linear(&h[a], 2)).leaky_relu()
        };
        let gru = |a: usize| {
            let i = w(8).matmul(&message(a)) + w(10);
            let k = w(9).matmul(&h[a]) + w(11);
            let i = i.chunk(3, 0);
            let k = k.chunk(3, 0);
            let reset = (&i[0] + &k[0]).sigmoid();
            let update = (&i[1] + &k[1]).sigmoid();
            let new = (&i[2] + reset * &k[2]).tanh();
            (1.0 - &update) * new + update * &h[a]
        };
        h = (0..n).map(gru).collect();
    }
    let rows = Tensor::stack(&h, 0);
    let zeros = |n: i64| Tensor::zeros([n], (Kind::Double, Device::Cpu));
    let mut q = zeros(128);
    let mut hidden = zeros(64);
    let mut cell = zeros(64);
    for _ in 0..3 {
        let gates = (w(16).matmul(&q) + w(18) + w(17).matmul(&hidden) + w(19)).chunk(4, 0);
        cell = gates[1].sigmoid() * cell + gates[0].sigmoid() * gates[2].tanh();
        hidden = gates[3].sigmoid() * cell.tanh();
        let attention = rows.matmul(&hidden).softmax(0, Kind::Double);
        q = Tensor::cat(&[&hidden, &attention.matmul(&rows)], 0);
    }
    linear(&q, 20).double_value(&[0])
}

#[test]
fn outputs_are_those_of_the_formulas() {
    let weights = weights();
    let file = Saved::new("formulas", &weights);
    let proxy = SehProxy::load(&file.0, Device::Cpu).unwrap();
    let found = proxy.outputs(&["CC(=O)N", "C", "NC(C)=O"].map(read)).unwrap();
    let methane = [[6.0, 1.0, 0.0, 0.0, 0.0, 1.0, 4.0]];
    for (found, expected) in
        found.iter().zip([by_hand(&weights, &ACETAMIDE, &BONDS), by_hand(&weights, &methane, &[])])
    {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
    // The output of a molecule must not depend on the order of its atoms and on the other molecules of the
    // batch. A different molecule must have a different output.
    assert!((found[0] - found[2]).abs() < 1e-6 && (found[0] - found[1]).abs() > 1e-4);
    // A score that has the proxy's output as a property must evaluate all molecules of a batch at once and
    // give each molecule its own output.
    let property = Property::Seh { weights: file.0.clone() };
    let score = ScoreConfig {
        factors: vec![Factor::from_property(Property::HeavyAtoms), Factor::from_property(property)],
    }
    .build()
    .unwrap();
    let expected = found.iter().zip([4.0, 1.0, 4.0]).map(|(output, atoms)| vec![atoms, *output]);
    let rows = score.properties(&["CC(=O)N", "C", "NC(C)=O"].map(read)).unwrap();
    assert!(
        rows.iter()
            .flatten()
            .zip(expected.flatten())
            .all(|(found, expected)| (found - expected).abs() < 1e-6)
    );
    let score = proxy.log_scores(&[read("C")]).unwrap()[0];
    assert!((score - (found[1] / 8.0).clamp(1e-4, 100.0).ln()).abs() < 1e-6);
}

#[test]
fn files_of_other_arrays_are_refused() {
    let mut weights = weights();
    weights[6] = weights[6].transpose(0, 1).contiguous();
    let file = Saved::new("shapes", &weights);
    let refused = |path: &Path| SehProxy::load(path, Device::Cpu).unwrap_err();
    let message = refused(&file.0).to_string();
    assert!(message.contains("array 6 has shape [128, 4096]"), "{message}");
    let few = Saved::new("few", &weights[..5]);
    assert!(refused(&few.0).to_string().contains("5 arrays"));
    assert!(matches!(refused("nowhere.npz".as_ref()), Error::Io { .. }));
    for bytes in [&b"PK\x03\x04 and no more"[..], b"\x1f\x8b and no more", b""] {
        std::fs::write(&few.0, bytes).unwrap();
        assert!(matches!(refused(&few.0), Error::File { .. }));
    }
}

/// Compares outputs for the published weights with those of the published network. Run the test by
/// `GFN_SEH_PROXY=best_params.pkl.gz cargo test -p gfn-molecules --release published -- --ignored
/// --nocapture`.
#[test]
#[ignore = "needs the published weights, which aren't part of the project"]
fn outputs_are_those_of_the_published_network() {
    let proxy = SehProxy::load(std::env::var("GFN_SEH_PROXY").unwrap(), Device::Cpu).unwrap();
    let golden: Value = serde_json::from_str(include_str!("golden/seh_proxy.json")).unwrap();
    let rows = golden["rows"].as_array().unwrap();
    let molecules: Vec<Molecule> = rows.iter().map(|row| read(row["smiles"].as_str().unwrap())).collect();
    let found = proxy.outputs(&molecules).unwrap();
    let gaps = found.iter().zip(rows).map(|(found, row)| (found - row["value"].as_f64().unwrap()).abs());
    let mut worst: Vec<(f64, &str)> =
        gaps.zip(rows).map(|(gap, row)| (gap, row["smiles"].as_str().unwrap())).collect();
    worst.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("{} molecules, the largest gaps {:?}", rows.len(), &worst[..5]);
    tch::set_num_threads(1);
    let times = (0..20).map(|_| {
        let start = Instant::now();
        proxy.outputs(&molecules[..64]).unwrap();
        start.elapsed().as_secs_f64()
    });
    println!("64 molecules in {:.1} ms on one thread", 1e3 * times.fold(f64::INFINITY, f64::min));
    assert!(worst[0].0 < 1e-3);
}
