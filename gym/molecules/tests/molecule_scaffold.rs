//! Tests of molecules that grow from a scaffold: the checks that every environment must pass, decorations
//! compared with an independent enumeration, and training.

use std::collections::{BTreeMap, BTreeSet};

use gfn::Rng;
use gfn::contract::{Budget, check_graph_env};
use gfn::env::StateGraph;
use gfn::graph::{GraphState, Scaffold};
use gfn::metrics::Distances;
use gfn::nn::{BackwardPolicy, ConvKind, GraphNet, GraphNetConfig};
use gfn::objective::TrajectoryBalance;
use gfn::optim::{AdamConfig, Schedule};
use gfn::policy::{GraphPolicy, UniformPolicy};
use gfn::rollout::Sampler;
use gfn::train::{Trainer, TrainerConfig};
use gfn_molecules::fragments::{Fragment, FragmentError};
use gfn_molecules::{
    AtomSpec, BondOrder, Element, Molecule, MoleculeConfig, MoleculeEnv, MoleculeReward, ValenceTable,
};

fn config(scaffold: Fragment, atoms: usize, treatment: Scaffold) -> MoleculeConfig {
    let max_atoms = scaffold.molecule().atoms().len() + atoms;
    MoleculeConfig {
        elements: vec![Element::C, Element::N, Element::O],
        charges: Vec::new(),
        scaffold: Some(scaffold),
        scaffold_atoms: treatment,
        ..MoleculeConfig::new(max_atoms)
    }
}

fn marked(smiles: &str) -> Fragment {
    Fragment::from_marked(smiles).unwrap()
}

/// Scaffolds with equivalent stems (attachment points), inequivalent stems, an atom with two stems, a chain
/// that can get a double bond, charges and hydrogens that the environment's elements wouldn't have by
/// themselves, fused rings, and a single atom.
const SCAFFOLDS: [&str; 8] = [
    "c1([*:1])c([*:2])c([*:3])c([*:4])c([*:5])c1[*:6]",
    "c1ccc([*:1])cc1",
    "c1cc([*:1])ncc1[*:2]",
    "C1CC1([*:1])[*:2]",
    "*C(*)C#N",
    "C[N+](C)(C*)CC([O-])=O",
    "c1ccc2[nH]c([*:1])c([*:2])c2c1",
    "*O*",
];

#[test]
fn environments_with_scaffolds_keep_their_contract() {
    for text in SCAFFOLDS {
        for treatment in [Scaffold::Alike, Scaffold::ToldApart] {
            let mut config = config(marked(text), 5, treatment);
            config.charges = vec![(Element::N, 1), (Element::O, -1)];
            check_graph_env(
                &MoleculeEnv::new(config.clone()).unwrap().into_env(),
                Budget::thorough().with_walks(3),
                &mut Rng::seeded(1),
            )
            .unwrap();
            let limits =
                MoleculeConfig { max_ring_size: Some(9), max_rings: Some(3), extra_valences: 1, ..config };
            check_graph_env(
                &MoleculeEnv::new(limits).unwrap().into_env(),
                Budget::thorough().with_walks(2),
                &mut Rng::seeded(2),
            )
            .unwrap();
        }
    }
}

#[test]
fn what_grows_keeps_the_scaffold_and_hangs_on_its_stems() {
    for text in SCAFFOLDS {
        let scaffold = marked(text);
        let n = scaffold.molecule().atoms().len();
        let molecules = MoleculeEnv::new(config(scaffold.clone(), 7, Scaffold::Alike)).unwrap();
        let env = molecules.env().clone();
        let samples = Sampler::new(&env, &UniformPolicy).forward(300, &mut Rng::seeded(3)).unwrap();
        let mut grown = 0;
        let mut rings = 0;
        for graph in samples.terminal_states().graphs() {
            let molecule = molecules.codec().molecule(graph).unwrap();
            assert_eq!(Molecule::from_smiles(&molecule.smiles()).unwrap().key(), molecule.key());
            let own = scaffold.molecule();
            let among: Vec<_> = molecule.bonds().iter().filter(|bond| bond.a < n && bond.b < n).collect();
            assert_eq!(among.len(), own.bonds().len());
            for (a, atom) in own.atoms().iter().enumerate() {
                let here = molecule.atoms()[a];
                let hung: u8 =
                    molecule.neighbours(a).filter(|(b, _)| *b >= n).map(|(_, bond)| bond.order.value()).sum();
                let room = scaffold.stems().iter().find(|stem| stem.atom == a).map_or(0, |stem| stem.room);
                assert!(hung <= room, "{}", molecule.smiles());
                assert_eq!(
                    (here.element, here.charge, here.hydrogens + hung),
                    (atom.element, atom.charge, atom.hydrogens)
                );
                assert!(
                    molecule.neighbours(a).all(|(b, bond)| b < n || !bond.in_ring),
                    "{}",
                    molecule.smiles()
                );
            }
            grown += usize::from(graph.n_nodes() > n);
            rings += usize::from(molecule.n_rings() > own.n_rings());
        }
        assert!(grown > 100 && rings > 0, "{text}: {grown} {rings}");
    }
}

/// Returns a key of a decorated scaffold, computed naively: the branches at the scaffold's atoms are written
/// as a text for each automorphism of the scaffold, and the smallest text is the key. If the environment
/// distinguishes the scaffold's atoms, only the identity is used. All aromatic bonds of the scaffold count as
/// equal.
fn key(env: &MoleculeEnv, graph: &GraphState) -> String {
    let scaffold = env.config().scaffold.as_ref().unwrap();
    let own = scaffold.molecule();
    let molecule = env.codec().molecule(graph).unwrap();
    let apart = env.config().scaffold_atoms == Scaffold::ToldApart;
    let mut best: Option<String> = None;
    // `maps` becomes the list of all automorphisms of the scaffold that preserve atoms, bonds and stems.
    let mut maps = vec![Vec::new()];
    let n = own.atoms().len();
    let room = |a: usize| scaffold.stems().iter().find(|stem| stem.atom == a).map_or(0, |stem| stem.room);
    let bond = |a: usize, b: usize| {
        own.neighbours(a)
            .find(|(c, _)| *c == b)
            .map(|(_, bond)| if bond.aromatic { 4 } else { bond.order.value() })
    };
    for a in 0..n {
        let mut longer = Vec::new();
        for map in &maps {
            for b in (0..n).filter(|b| !map.contains(b) && (!apart || a == *b)) {
                let same = own.atoms()[a] == own.atoms()[b] && room(a) == room(b);
                if same && map.iter().enumerate().all(|(c, &d): (usize, &usize)| bond(a, c) == bond(b, d)) {
                    longer.push([map.as_slice(), &[b]].concat());
                }
            }
        }
        maps = longer;
    }
    assert!(!maps.is_empty());
    for map in maps {
        // The branch that grows from each atom of the scaffold is written as a molecule, in which a marked
        // atom replaces the scaffold's atom.
        let mut words = vec![String::new(); n];
        for a in 0..n {
            let mut part = vec![a];
            let mut next = 0;
            while let Some(&b) = part.get(next) {
                next += 1;
                let new: Vec<usize> =
                    molecule.neighbours(b).map(|(c, _)| c).filter(|c| *c >= n && !part.contains(c)).collect();
                part.extend(new);
            }
            let table = ValenceTable::default().with(Element::Si, 9, &(0..=20).collect::<Vec<_>>());
            let spec = |&b: &usize| {
                let atom = molecule.atoms()[b];
                let plain =
                    AtomSpec { element: atom.element, charge: atom.charge, hydrogens: Some(atom.hydrogens) };
                if b == a { AtomSpec { element: Element::Si, charge: 9, hydrogens: Some(0) } } else { plain }
            };
            let specs: Vec<AtomSpec> = part.iter().map(spec).collect();
            let place = |b: usize| part.iter().position(|&other| other == b);
            let bonds: Vec<(usize, usize, BondOrder)> = molecule
                .bonds()
                .iter()
                .filter_map(|bond| Some((place(bond.a)?, place(bond.b)?, bond.order)))
                .collect();
            words[map[a]] = format!("{:?}", Molecule::new(&table, &specs, &bonds).unwrap().key());
        }
        let word = words.join(" ");
        if best.as_ref().is_none_or(|best| word < *best) {
            best = Some(word);
        }
    }
    best.unwrap()
}

/// Groups states by the text that `key` computes naively. Each group must be one object of the environment,
/// and the members of the group must be its Kekule forms.
#[test]
fn decorations_are_those_that_differ_by_other_means() {
    let cases = [
        (SCAFFOLDS[0], 3, Scaffold::Alike),
        (SCAFFOLDS[0], 2, Scaffold::ToldApart),
        (SCAFFOLDS[2], 3, Scaffold::Alike),
        (SCAFFOLDS[3], 3, Scaffold::Alike),
        (SCAFFOLDS[4], 3, Scaffold::Alike),
        (SCAFFOLDS[7], 4, Scaffold::Alike),
        (SCAFFOLDS[7], 4, Scaffold::ToldApart),
    ];
    for (text, atoms, treatment) in cases {
        let env = MoleculeEnv::new(config(marked(text), atoms, treatment)).unwrap();
        let space = StateGraph::build(env.env(), 1 << 16).unwrap();
        let mut objects: BTreeMap<String, usize> = BTreeMap::new();
        for state in space.states().graphs() {
            *objects.entry(key(&env, state)).or_default() += 1;
        }
        for state in space.states().graphs() {
            let several = objects[&key(&env, state)];
            assert!(
                (env.env().rules().log_multiplicity(state).unwrap() - (several as f64).ln()).abs() < 1e-12,
                "{state}"
            );
        }
        println!(
            "{text}, {atoms} atoms, {treatment:?}: {} states, {} decorations",
            space.len(),
            objects.len()
        );
        assert!(objects.len() > 20);
    }
}

/// Tests that both Kekule forms of a six-membered ring attached to a scaffold are the same object. The ring
/// has two different forms if it has a substituent next to its bond to the scaffold.
#[test]
fn kekule_forms_of_what_hangs_on_a_scaffold_are_one_object() {
    for treatment in [Scaffold::Alike, Scaffold::ToldApart] {
        let scaffold = marked("O([*:1])[*:2]");
        let molecules = MoleculeEnv::new(config(scaffold, 8, treatment)).unwrap();
        let env = molecules.env().clone();
        let samples = Sampler::new(&env, &UniformPolicy).forward(2, &mut Rng::seeded(0)).unwrap();
        assert_eq!(samples.terminal_states().graphs().len(), 2);
        // This graph is the scaffold with a phenyl group that has a methyl group next to its bond to the
        // scaffold.
        let start = env.initial_graphs()[0].clone();
        let mut graph = start;
        for _ in 0..7 {
            graph.add_node(gfn::graph::Node::from_class(0));
        }
        let edge = |order: u8| {
            let mut edge = gfn::graph::Edge::default();
            edge.attributes.set(0, order - 1);
            edge
        };
        for (a, b, order) in
            [(0, 1, 1), (1, 2, 2), (2, 3, 1), (3, 4, 2), (4, 5, 1), (5, 6, 2), (6, 1, 1), (2, 7, 1)]
        {
            graph.add_edge(a, b, edge(order)).unwrap();
        }
        assert_eq!(env.rules().log_multiplicity(&graph).unwrap(), 2f64.ln());
        let forms = env.rules().forms(&graph).unwrap().unwrap();
        assert_eq!(forms.len(), 2);
        let molecules: BTreeSet<_> =
            forms.iter().map(|form| molecules.codec().molecule(form).unwrap().key()).collect();
        assert_eq!(molecules.len(), 1);
        assert!(forms.iter().all(|form| env.rules().is_reachable(form)));
    }
}

/// Trains a policy for a few seconds. Returns the total variation between the policy and the exact target,
/// and the number of states.
fn trained(text: &str, treatment: Scaffold, corrects: bool) -> (f64, usize) {
    tch::set_num_threads(1);
    let config = MoleculeConfig { corrects_symmetry: corrects, ..config(marked(text), 2, treatment) };
    let molecules = MoleculeEnv::new(config).unwrap();
    let env = molecules.env().clone();
    let reward =
        MoleculeReward::new(molecules.codec(), |molecule: &Molecule| 0.1 + molecule.heteroatom_share());
    let space = StateGraph::build(&env, 1 << 14).unwrap();
    let target = space.target_distribution(&reward, None).unwrap();
    let network = GraphNetConfig {
        conv: ConvKind::Gine,
        layers: 3,
        embedding: 48,
        pair_walks: Some(2),
        backward: BackwardPolicy::SharedTorso,
        ..GraphNetConfig::default()
    };
    let mut rng = Rng::seeded(0);
    let net = GraphNet::new(&env, network, tch::Device::Cpu, tch::Kind::Float, &mut rng).unwrap();
    let steps = 250;
    let config = TrainerConfig {
        batch: 64,
        adam: AdamConfig { lr: 5e-3, log_z_lr: 1e-1, ..AdamConfig::default() },
        lr_scale: Schedule::Linear { from: 1.0, to: 0.0, steps },
        ..TrainerConfig::default()
    };
    let mut trainer = Trainer::new(env, reward, GraphPolicy(net), TrajectoryBalance, config, rng).unwrap();
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    let probs = space.terminating_distribution(trainer.env(), trainer.policy(), None).unwrap().probs;
    (Distances::between(&probs, &target.probs).unwrap().tv, space.len())
}

#[test]
#[ignore = "half a minute or more: `scripts/check_all` runs it"]
fn decorations_are_sampled_in_proportion_to_the_reward() {
    for (text, treatment) in [
        ("c1([*:1])ccc([*:2])cc1", Scaffold::Alike),
        ("c1cc([*:1])ncc1[*:2]", Scaffold::Alike),
        ("c1([*:1])ccc([*:2])cc1", Scaffold::ToldApart),
    ] {
        let (tv, states) = trained(text, treatment, true);
        println!("{text}, {treatment:?}: TV {tv:.4} over {states} decorations");
        assert!(tv < 0.05, "{text}: {tv}");
    }
    // Training without the correction for symmetry is the negative control: decorations that a symmetry of
    // the scaffold preserves are sampled too often.
    let (tv, _) = trained("c1([*:1])ccc([*:2])cc1", Scaffold::Alike, false);
    println!("not corrected: TV {tv:.4}");
    assert!(tv > 0.05, "{tv}");
}

#[test]
fn scaffolds_that_make_no_sense_are_refused() {
    let marks = |text: &str| Fragment::from_marked(text).unwrap_err();
    assert!(matches!(marks("c1ccccc1"), FragmentError::NoStem { .. }));
    assert!(
        matches!(marks("C=*"), FragmentError::Mark { .. })
            || matches!(marks("C=*"), FragmentError::Molecule(_))
    );
    assert!(matches!(marks("C*C"), FragmentError::Mark { .. } | FragmentError::Molecule(_)));
    assert!(matches!(marks("**"), FragmentError::Mark { .. }));
    assert!(matches!(marks("*"), FragmentError::Mark { .. }));
    assert!(matches!(marks("C([*:1]"), FragmentError::Molecule(_)));
    assert!(matches!(marks("C[*:x]"), FragmentError::Molecule(_)));
    assert!(matches!(Fragment::new("C", &[0; 5]), Err(FragmentError::Hydrogens { .. })));
    let methane = Molecule::from_smiles("C").unwrap();
    assert!(matches!(Fragment::from_molecule(&methane, &[1]), Err(FragmentError::NoAtom { .. })));
    // In these texts, attachment marks stand next to iodine and chlorine, brackets, rings, and symbols of two
    // letters.
    let same = |text: &str, smiles: &str, stems: &[usize]| {
        assert!(marked(text).is_same(&Fragment::new(smiles, stems).unwrap()), "{text}");
    };
    same("IC(*)Cl", "C(I)Cl", &[0]);
    same(
        "Clc1c([*:1])c(Br)cc%12c1.[Na]".trim_end_matches(".[Na]").replace("%12", "").as_str(),
        "Clc1cc(Br)ccc1",
        &[2],
    );
    same("[*]C[NH2+]*", "C[NH3+]", &[0, 1]);
    same("*C(*)(*)*", "C", &[0, 0, 0, 0]);

    let refused = |config: MoleculeConfig| MoleculeEnv::new(config).unwrap_err().to_string();
    let naphthalene = || marked("c1ccc2cc(*)ccc2c1");
    let base = config(naphthalene(), 2, Scaffold::Alike);
    assert!(
        refused(MoleculeConfig { max_atoms: 10, ..base.clone() })
            .contains("with 10 atoms, although `max_atoms` is 10")
    );
    assert!(
        refused(MoleculeConfig { max_rings: Some(1), ..base.clone() })
            .contains("with 2 rings, although `max_rings` is 1")
    );
    assert!(
        refused(MoleculeConfig { max_ring_size: Some(5), ..base.clone() })
            .contains("a ring of more than 5 atoms")
    );
    let molecules = MoleculeEnv::new(base).unwrap();
    let message = molecules.codec().graph(&methane).unwrap_err().to_string();
    assert!(message.contains("without a scaffold"), "{message}");
}
