//! Tests of reward proxies in TorchScript: the proxy of a descriptor must equal this descriptor, and wrong
//! outputs must be refused.

use std::path::PathBuf;

use gfn::env::Reward;
use gfn::graph::GraphStates;
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn::{Error, Rng};
use gfn_molecules::{
    Element, Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward, MoleculeScore, ProxyOutput,
    TorchScriptProxy,
};
use tch::{Device, Kind, Tensor};

/// A traced module in a temporary file. The file is deleted when the `Script` is dropped.
struct Script(PathBuf);

impl Script {
    fn new(name: &str, mut forward: impl FnMut(&[Tensor]) -> Tensor) -> Self {
        let path = std::env::temp_dir().join(format!("gfn-proxy-{name}-{}.pt", std::process::id()));
        // The example inputs for tracing are those of methanol and ethane.
        let integers = |values: &[i64]| Tensor::from_slice(values);
        let inputs = [
            integers(&[6, 0, 3, 8, 0, 1, 6, 0, 3, 6, 0, 3]).view([4, 3]),
            integers(&[0, 1, 2, 3, 1, 0, 3, 2]).view([2, 4]),
            integers(&[1, 1, 1, 1]),
            integers(&[0, 0, 1, 1]),
        ];
        let mut traced = |inputs: &[Tensor]| vec![forward(inputs)];
        tch::CModule::create_by_tracing("Proxy", "forward", &inputs, &mut traced)
            .unwrap()
            .save(&path)
            .unwrap();
        Self(path)
    }

    fn load(&self, output: ProxyOutput) -> gfn::Result<TorchScriptProxy> {
        TorchScriptProxy::load(&self.0, output, Device::Cpu)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// Sums the values of the atoms of each molecule.
fn per_molecule(values: &Tensor, batch: &Tensor) -> Tensor {
    batch.bincount(Some(values.to_kind(Kind::Double)), 0)
}

fn number_of(inputs: &[Tensor], atomic_number: i64) -> Tensor {
    per_molecule(&inputs[0].select(1, 0).eq(atomic_number), &inputs[3])
}

/// Returns random molecules with rings, charges and all elements, their states and their environment. Some
/// molecules are aromatic.
fn molecules() -> (MoleculeEnv, GraphStates, Vec<Molecule>) {
    let env = MoleculeEnv::new(MoleculeConfig::new(12)).unwrap();
    let mut graphs = Sampler::new(env.env(), &UniformPolicy)
        .forward(150, &mut Rng::seeded(4))
        .unwrap()
        .terminal_states()
        .graphs()
        .to_vec();
    for smiles in ["Cc1ccccc1C", "c1cc[nH]c1", "C", "C[N+](=O)[O-]", "N#Cc1ccncc1"] {
        graphs.push(env.codec().graph(&Molecule::from_smiles(smiles).unwrap()).unwrap());
    }
    let molecules = graphs.iter().map(|graph| env.codec().molecule(graph).unwrap()).collect();
    (env, graphs.into(), molecules)
}

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || (a - b).abs() < 1e-9)
}

#[test]
fn a_proxy_is_the_closure_that_it_computes() {
    let (env, states, molecules) = molecules();
    // The script's output depends on every feature of the atoms, on both ends of each bond and on its type,
    // so that an error in any input changes the output.
    let script = Script::new("descriptor", |inputs| {
        let [atoms, bonds, types, batch] = inputs else { panic!("{} inputs", inputs.len()) };
        let charge = per_molecule(&atoms.select(1, 1).square(), batch);
        let hydrogens = atoms.select(1, 2);
        let from_end = types.pow_tensor_scalar(3) * (hydrogens.index_select(0, &bonds.get(0)) + 1);
        let at_atoms = batch.zeros_like().index_add(0, &bonds.get(1), &from_end);
        let bonds = per_molecule(&at_atoms, batch);
        number_of(inputs, 6) + charge * 10.0 + per_molecule(&hydrogens, batch) * 100.0 + bonds * 1000.0
    });
    let closure = |molecule: &Molecule| {
        let atoms = molecule.atoms().iter().map(|atom| {
            f64::from(u8::from(atom.element == Element::C))
                + 10.0 * f64::from(atom.charge).powi(2)
                + 100.0 * f64::from(atom.hydrogens)
        });
        let bonds = molecule.bonds().iter().map(|bond| {
            let order = if bond.aromatic { 4.0 } else { f64::from(bond.order.value()) };
            let hydrogens = |atom: usize| f64::from(molecule.atoms()[atom].hydrogens);
            1000.0 * order.powi(3) * (2.0 + hydrogens(bond.a) + hydrogens(bond.b))
        });
        atoms.sum::<f64>() + bonds.sum::<f64>()
    };
    let proxy = script.load(ProxyOutput::Score).unwrap();
    let expected = closure.log_scores(&molecules).unwrap();
    assert!(close(&proxy.log_scores(&molecules).unwrap(), &expected));
    // The proxy must return the same results for single molecules, and as the reward of states.
    for (molecule, &log) in molecules.iter().zip(&expected).take(20) {
        assert!(
            close(&proxy.log_scores(std::slice::from_ref(molecule)).unwrap(), &[log]),
            "{}",
            molecule.smiles()
        );
    }
    assert_eq!(proxy.log_scores(&[]).unwrap(), [0.0; 0]);
    let rewards = MoleculeReward::new(env.codec(), proxy).log_reward(&states, None).unwrap();
    assert!(close(&rewards, &MoleculeReward::new(env.codec(), closure).log_reward(&states, None).unwrap()));
    // The same script is loaded again, and its output is now interpreted as the logarithm of the score.
    let logs = script.load(ProxyOutput::LogScore).unwrap().log_scores(&molecules).unwrap();
    assert!(close(&logs, &expected.iter().map(|log| log.exp()).collect::<Vec<_>>()));
    assert!(molecules.iter().any(|m| m.charge() == 0 && m.atoms().iter().any(|atom| atom.charge != 0)));
    // These two texts are the Kekule forms of o-xylene.
    let forms = ["CC1=CC=CC=C1C", "CC1=C(C)C=CC=C1"].map(|text| Molecule::from_smiles(text).unwrap());
    let logs = script.load(ProxyOutput::Score).unwrap().log_scores(&forms).unwrap();
    assert_eq!(logs[0], logs[1]);
}

#[test]
fn what_is_no_score_is_refused_with_the_molecule() {
    let (_, _, molecules) = molecules();
    let contract = |error: Error, parts: &[&str]| {
        let message = error.to_string();
        assert!(matches!(error, Error::Contract { .. }), "{message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    // These scripts return outputs of the wrong shape: a number per atom, and a tensor with two dimensions
    // instead of one.
    let atoms = Script::new("atoms", |inputs| inputs[0].select(1, 0).to_kind(Kind::Double));
    contract(atoms.load(ProxyOutput::Score).unwrap_err(), &["[9]", "2 molecules", "CCO"]);
    let column = Script::new("column", |inputs| number_of(inputs, 6).unsqueeze(1));
    contract(column.load(ProxyOutput::Score).unwrap_err(), &["[2, 1]", "CCO"]);
    // The script divides by the number of oxygens, which gives 0 / 0 for molecules without oxygen.
    let ratio = Script::new("ratio", |inputs| number_of(inputs, 8) / number_of(inputs, 8));
    let found =
        molecules.iter().position(|m| !m.atoms().iter().any(|atom| atom.element == Element::O)).unwrap();
    for output in [ProxyOutput::Score, ProxyOutput::LogScore] {
        let error = ratio.load(output).unwrap().log_scores(&molecules).unwrap_err();
        contract(error, &["NaN", &molecules[found].smiles()]);
    }
    let negative = Script::new("negative", |inputs| -number_of(inputs, 6));
    let error = negative.load(ProxyOutput::Score).unwrap().log_scores(&molecules).unwrap_err();
    let found =
        molecules.iter().position(|m| m.atoms().iter().any(|atom| atom.element == Element::C)).unwrap();
    contract(error, &["-", "LogScore", &molecules[found].smiles()]);
    assert!(negative.load(ProxyOutput::LogScore).unwrap().log_scores(&molecules).is_ok());
    // Minus infinity is the logarithm of a reward of 0 and must be accepted. Plus infinity must be refused.
    let nothing = Script::new("nothing", |inputs| number_of(inputs, 8).pow_tensor_scalar(-1) * -1.0);
    let methane = [Molecule::from_smiles("C").unwrap()];
    assert_eq!(
        nothing.load(ProxyOutput::LogScore).unwrap().log_scores(&methane).unwrap(),
        [f64::NEG_INFINITY]
    );
    let infinite = Script::new("infinite", |inputs| number_of(inputs, 8).pow_tensor_scalar(-1));
    contract(infinite.load(ProxyOutput::LogScore).unwrap().log_scores(&methane).unwrap_err(), &["inf", "C"]);
    // A missing file, and a script with other inputs, must be refused, too.
    let missing =
        TorchScriptProxy::load("no-such-proxy.pt".as_ref(), ProxyOutput::Score, Device::Cpu).unwrap_err();
    assert!(matches!(missing, Error::File { .. }));
    let path = std::env::temp_dir().join(format!("gfn-proxy-points-{}.pt", std::process::id()));
    let mut sum = |inputs: &[Tensor]| vec![inputs[0].sum(Kind::Double)];
    let inputs = [Tensor::zeros([2, 3], (Kind::Double, Device::Cpu))];
    tch::CModule::create_by_tracing("Points", "forward", &inputs, &mut sum).unwrap().save(&path).unwrap();
    let other = TorchScriptProxy::load(&path, ProxyOutput::Score, Device::Cpu).unwrap_err();
    assert!(matches!(other, Error::Torch(_)), "{other}");
    std::fs::remove_file(path).unwrap();
}
