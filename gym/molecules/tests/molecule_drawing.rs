//! Tests of drawings: no two atoms overlap, and a molfile can be read back as the same molecule.

use gfn::Rng;
use gfn::policy::UniformPolicy;
use gfn::rollout::Sampler;
use gfn_molecules::{
    AtomSpec, BondOrder, Element, Molecule, MoleculeConfig, MoleculeEnv, MoleculeError, StereoElement,
    ValenceTable,
};
use gfn_plot::Canvas;
use serde_json::Value;

fn golden() -> Vec<Molecule> {
    let golden: Value = serde_json::from_str(include_str!("golden/molecules.json")).unwrap();
    let valid = golden["cases"].as_array().unwrap().iter().filter(|case| case["valid"] == true);
    valid.map(|case| Molecule::from_smiles(case["smiles"].as_str().unwrap()).unwrap()).collect()
}

fn of(smiles: &str) -> Molecule {
    Molecule::from_smiles(smiles).unwrap()
}

type Places = Vec<(f64, f64)>;

fn distance(places: &Places, a: usize, b: usize) -> f64 {
    (places[a].0 - places[b].0).hypot(places[a].1 - places[b].1)
}

/// Returns the angle at atom `b` between the directions to `a` and `c`, in degrees.
fn angle(places: &Places, a: usize, b: usize, c: usize) -> f64 {
    let p = distance(places, a, b);
    let q = distance(places, b, c);
    let cos = (p * p + q * q - distance(places, a, c).powi(2)) / (2.0 * p * q);
    cos.clamp(-1.0, 1.0).acos().to_degrees()
}

/// Returns `true` if all bonds of a molecule's drawing have the length 1.
fn is_even(molecule: &Molecule) -> bool {
    let places = molecule.coordinates();
    molecule.bonds().iter().all(|bond| (distance(&places, bond.a, bond.b) - 1.0).abs() < 1e-6)
}

fn roll_outs(n: usize, config: MoleculeConfig) -> Vec<Molecule> {
    let molecules = MoleculeEnv::new(config).unwrap();
    let env = molecules.env().clone();
    let sampled = Sampler::new(&env, &UniformPolicy).forward(n, &mut Rng::seeded(3)).unwrap();
    sampled
        .terminal_states()
        .graphs()
        .iter()
        .map(|graph| molecules.codec().molecule(graph).unwrap())
        .collect()
}

/// Checks that a molecule's drawing contains all its atoms and bonds, and that no two atoms have the same
/// position.
fn check_drawing(molecule: &Molecule) {
    let smiles = molecule.smiles();
    let places = molecule.coordinates();
    assert_eq!(places.len(), molecule.atoms().len());
    let apart = (0..places.len()).all(|a| (0..a).all(|b| distance(&places, a, b) > 0.1));
    assert!(apart && places.iter().all(|p| p.0.is_finite() && p.1.is_finite()), "{smiles}: {places:?}");
    let svg = molecule.without_stereo().drawing(200.0, 200.0).to_svg().unwrap();
    let lines: usize = molecule.bonds().iter().map(|bond| usize::from(bond.order.value())).sum();
    assert_eq!(svg.matches("<polyline").count(), lines, "{smiles}");
    let is_named = |a: usize| {
        let atom = molecule.atoms()[a];
        places.len() < 3 || atom.element != Element::C || atom.charge != 0
    };
    assert_eq!(svg.matches("<text").count(), (0..places.len()).filter(|&a| is_named(a)).count(), "{smiles}");
}

#[test]
fn every_atom_and_bond_is_drawn_at_a_place_of_its_own() {
    golden().iter().for_each(check_drawing);
    let small = MoleculeConfig { max_rings: Some(3), max_ring_size: Some(7), ..MoleculeConfig::new(15) };
    for config in [small, MoleculeConfig::new(10)] {
        roll_outs(100, config).iter().for_each(check_drawing);
    }
}

#[test]
fn rings_are_regular_chains_zigzag_and_triple_bonds_lie_on_a_line() {
    for (smiles, n) in [("C1CCCC1", 5), ("c1ccccc1", 6), ("C1CCCCCCC1", 8)] {
        let places = of(smiles).coordinates();
        for k in 0..n {
            let found = angle(&places, k, (k + 1) % n, (k + 2) % n);
            assert!((found - 180.0 * (n as f64 - 2.0) / n as f64).abs() < 1e-6, "{smiles}: {found}");
        }
    }
    // In the drawing of these ring systems, all bonds must have length 1, and the angles in rings must be
    // those of regular polygons.
    for smiles in
        ["C1CCC2CCCCC2C1", "CC12CCC3c4ccc(O)cc4CCC3C1CCC2O", "c1cc2ccc3cccc4ccc(c1)c2c34", "C1CCC2(C1)CCCCC2"]
    {
        assert!(is_even(&of(smiles)), "{smiles}");
    }
    let chain = of("CCCCCCCC").coordinates();
    for k in 0..6 {
        assert!((angle(&chain, k, k + 1, k + 2) - 120.0).abs() < 1e-6);
    }
    // The chain is drawn trans throughout, so that the distance between its ends is as large as possible.
    assert!((distance(&chain, 0, 6) - 6.0 * 0.75f64.sqrt()).abs() < 1e-6);
    let butyne = of("CC#CC").coordinates();
    assert!((distance(&butyne, 0, 3) - 3.0).abs() < 1e-6);
}

#[test]
fn the_same_molecule_is_drawn_the_same_whatever_its_order_and_kekule_form() {
    // This closure returns the elements and positions of a drawing's atoms, sorted, so that drawings of
    // different spellings can be compared.
    let sorted = |smiles: &str| {
        let molecule = of(smiles);
        let whole = |value: f64| (value * 1e6).round() as i64;
        let drawn = molecule.atoms().iter().zip(molecule.coordinates());
        let mut drawn: Vec<_> =
            drawn.map(|(atom, p)| (atom.element.symbol(), whole(p.0), whole(p.1))).collect();
        drawn.sort_unstable();
        drawn
    };
    assert_eq!(sorted("CC1=C(C)C=CC=C1O"), sorted("Oc1c(C)c(C)ccc1"));
    assert_eq!(
        sorted("CN1CCC23c4c5ccc(O)c4OC2C(O)C=CC3C1C5"),
        sorted("C1=CC2C3CC4=C5C2(C(C1O)OC5=C(C=C4)O)CCN3C")
    );
    assert_ne!(sorted("CC1=C(C)C=CC=C1O"), sorted("Cc1c(O)c(C)ccc1"));
}

/// The content of a molfile: for each atom its element, coordinates, valence field and charge; for each bond
/// its two atoms, its order and its stereo field.
struct Table {
    atoms: Vec<(String, [f64; 3], i32, i32)>,
    bonds: Vec<(usize, usize, u8, u8)>,
}

fn parsed(molfile: &str) -> Table {
    let lines: Vec<&str> = molfile.lines().collect();
    let number = |line: &str, from: usize, to: usize| line[from..to].trim().parse::<i32>().unwrap();
    assert_eq!((&lines[3][33..], lines[1].len(), &lines[1][20..]), (" V2000", 22, "2D"));
    let n = number(lines[3], 0, 3) as usize;
    let m = number(lines[3], 3, 6) as usize;
    let mut atoms: Vec<_> = lines[4..4 + n]
        .iter()
        .map(|line| {
            assert_eq!((line.len(), &line[30..31]), (69, " "));
            let place = [0, 10, 20].map(|from| line[from..from + 10].trim().parse::<f64>().unwrap());
            (line[31..34].trim().to_owned(), place, number(line, 48, 51), 0)
        })
        .collect();
    let bonds = lines[4 + n..4 + n + m].iter().map(|line| {
        assert_eq!(line.len(), 12);
        let [a, b, order, mark] = [0, 3, 6, 9].map(|from| number(line, from, from + 3));
        (a as usize - 1, b as usize - 1, order as u8, mark as u8)
    });
    let bonds = bonds.collect();
    let (end, properties) = lines[4 + n + m..].split_last().unwrap();
    assert_eq!(*end, "M  END");
    for line in properties {
        assert_eq!(&line[..6], "M  CHG");
        let count = number(line, 6, 9) as usize;
        assert!((1..=8).contains(&count) && line.len() == 9 + 8 * count);
        for k in 0..count {
            let atom = number(line, 9 + 8 * k, 13 + 8 * k);
            let charge = number(line, 13 + 8 * k, 17 + 8 * k);
            atoms[atom as usize - 1].3 = charge;
        }
    }
    Table { atoms, bonds }
}

#[test]
fn molfiles_say_what_the_molecule_is() {
    let mut molecules = golden();
    // The additional molecules have more charges than fit on one line of a molfile, atoms with every kind of
    // valence field, and the largest number of atoms.
    molecules.push(of(&format!("C{}", "[N+](C)(C)C".repeat(11))));
    molecules.extend(["[NH4+]", "[OH-]", "C[PH2]=O", "[SH4](C)C", "O=S(=O)(O)O", "[Cl-]"].map(of));
    molecules.push(of(&"C".repeat(999)));
    let mut charged = 0;
    let mut written = 0;
    for molecule in &molecules {
        let table = parsed(&molecule.molfile("a title").unwrap());
        assert_eq!((table.atoms.len(), table.bonds.len()), (molecule.atoms().len(), molecule.bonds().len()));
        let mut specs = Vec::new();
        let places = molecule.coordinates();
        let mut bound = vec![0; table.atoms.len()];
        for &(a, b, order, _) in &table.bonds {
            bound[a] += i32::from(order);
            bound[b] += i32::from(order);
        }
        for (a, (symbol, place, valence, charge)) in table.atoms.iter().enumerate() {
            let drawn = places[a];
            assert!((place[0] - 1.5 * drawn.0).abs() < 1e-4 && (place[1] - 1.5 * drawn.1).abs() < 1e-4);
            assert_eq!(place[2], 0.0);
            let hydrogens = match valence {
                0 => None,
                15 => Some(0),
                valence => Some((valence - bound[a]) as u8),
            };
            // The value 0 in a valence field means the smallest valence of a neutral atom, so charged atoms
            // must have another value there.
            assert!(*charge == 0 || hydrogens.is_some());
            charged += usize::from(*charge != 0);
            written += usize::from(hydrogens.is_some() && *charge == 0);
            specs.push(AtomSpec {
                element: Element::from_symbol(symbol).unwrap().0,
                charge: *charge as i8,
                hydrogens,
            });
        }
        let order =
            |order: u8| [BondOrder::Single, BondOrder::Double, BondOrder::Triple][usize::from(order) - 1];
        let bonds: Vec<_> = table.bonds.iter().map(|&(a, b, k, _)| (a, b, order(k))).collect();
        // The molecule read from the file must equal the original atom by atom, in the same Kekule form.
        assert_eq!(&Molecule::new(&ValenceTable::default(), &specs, &bonds).unwrap(), molecule);
    }
    assert!(charged > 20 && written > 5, "{charged} {written}");
    let marks = |smiles: &str| {
        parsed(&of(smiles).molfile("").unwrap()).bonds.iter().filter(|bond| bond.3 == 3).count()
    };
    // Only the first three molecules have a double bond that can be cis or trans. The molfile must mark this
    // bond as undetermined.
    for (smiles, open) in
        [("CC=CC", 1), ("CC=NO", 1), ("C1CCCC=CCC1", 1), ("C=CC", 0), ("C1=CCCCC1", 0), ("c1ccccc1", 0)]
    {
        assert_eq!(marks(smiles), open, "{smiles}");
    }
}

#[test]
fn what_a_molfile_cannot_hold_is_refused() {
    let message = |result: Result<String, MoleculeError>| match result.unwrap_err() {
        MoleculeError::Molfile { problem } => problem,
        other => panic!("{other}"),
    };
    let long = of(&"C".repeat(1_000));
    assert!(message(long.molfile("")).contains("1000 atoms"));
    let ethanol = of("CCO");
    for title in ["two\nlines", &"a".repeat(81), &"\u{e4}".repeat(81), "$$$$"] {
        assert!(message(ethanol.molfile(title)).contains("the title"));
    }
    for title in [&"\u{e4}".repeat(80), "$5 a gram"] {
        assert!(ethanol.molfile(title).unwrap().starts_with(&format!("{title}\n")));
    }
    let refused = gfn::Error::from(long.molfile("").unwrap_err()).to_string();
    assert!(
        refused.starts_with("the molecule is not writable as a molfile, which can't hold 1000 atoms")
            && refused.ends_with("with plain names"),
        "{refused}"
    );
    let unclosed = gfn::Error::from(Molecule::from_smiles("C(").unwrap_err()).to_string();
    assert!(
        unclosed.starts_with("the molecule is not valid (") && unclosed.contains("expected a SMILES"),
        "{unclosed}"
    );
    for (name, value) in [("a name", "1"), ("", "1"), ("1st", "1"), ("score", "a\n\nb"), ("score", "")] {
        assert!(message(ethanol.sdf_record("", &[(name, value)])).contains("data item"));
    }
    let record = ethanol.sdf_record("", &[("score", "0.5")]).unwrap();
    assert_eq!(record, ethanol.molfile("").unwrap() + ">  <score>\n0.5\n\n$$$$\n");
}

#[test]
fn formulas_have_a_line_per_electron_pair_and_letters_for_what_is_no_carbon() {
    let folder = std::env::temp_dir().join(format!("gfn-formulas-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let svg = |smiles: &str| {
        of(smiles).drawing(200.0, 200.0).write(folder.join("a.svg")).unwrap();
        std::fs::read_to_string(folder.join("a.svg")).unwrap()
    };
    for (smiles, lines, letters) in [
        ("CCCC", 3, &[][..]),
        ("CC#CC", 5, &[]),
        ("c1ccccc1", 9, &[]),
        ("C[N+](=O)[O-]", 4, &["N\u{207a}", "O", "O\u{207b}"]),
        ("CCN", 2, &["NH\u{2082}"]),
        ("C", 0, &["CH\u{2084}"]),
        ("[NH3+]CC(=O)[O-]", 5, &["H\u{2083}N\u{207a}", "O", "O\u{207b}"]),
    ] {
        let svg = svg(smiles);
        assert_eq!(svg.matches("<polyline").count(), lines, "{smiles} {svg}");
        let mut found: Vec<&str> =
            svg.split("<text").skip(1).map(|text| text.split(['>', '<']).nth(1).unwrap().trim()).collect();
        let mut expected = letters.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{smiles}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn drawings_stay_on_their_canvas() {
    let folder = std::env::temp_dir().join(format!("gfn-on-canvas-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let largest = golden().into_iter().max_by_key(|molecule| molecule.atoms().len()).unwrap();
    let number = |text: &str| text.parse::<f64>().unwrap();
    let attribute = |tag: &str, name: &str| {
        number(tag.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap())
    };
    for (molecule, side) in
        [(&largest, 120.0), (&largest, 20.0), (&of(&"C".repeat(300)), 200.0), (&of("CCO"), 0.0)]
    {
        let drawing = molecule.drawing(side, side);
        drawing.write(folder.join("a.png")).unwrap();
        drawing.write(folder.join("a.svg")).unwrap();
        let svg = std::fs::read_to_string(folder.join("a.svg")).unwrap();
        let on_canvas = |value: f64| (0.0..=side).contains(&value);
        let mut seen = 0;
        for line in svg.split("<polyline").skip(1) {
            let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
            assert!(
                points.split([' ', ',']).filter(|part| !part.is_empty()).map(number).all(on_canvas),
                "{points}"
            );
            seen += 1;
        }
        for tag in svg.split("<text").skip(1) {
            let text = tag.split(['>', '<']).nth(1).unwrap().trim();
            let x = attribute(tag, "x");
            let y = attribute(tag, "y");
            let size = attribute(tag, "font-size");
            assert!([x, x + Canvas::text_width(text, size), y].into_iter().all(on_canvas), "{tag}");
            seen += 1;
        }
        assert!(seen >= molecule.bonds().len(), "{svg}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Tests that the stereo marks drawn in a molfile are those of the molecule. The test lifts the end of each
/// wedge off the paper or pushes it below. The sign of the volume that the neighbours of the stereocentre
/// span must then be that of the mark.
#[test]
fn wedges_and_places_say_which_isomer_it_is() {
    let mut seen = [0, 0];
    let mut wrong_if_flat = 0;
    let golden: Value = serde_json::from_str(include_str!("golden/stereoisomers.json")).unwrap();
    let texts =
        golden["cases"].as_array().unwrap().iter().flat_map(|case| case["isomers"].as_array().unwrap());
    for text in texts.map(|isomer| isomer[1].as_str().or(isomer[0].as_str()).unwrap()) {
        let molecule = of(text);
        let molfile = match molecule.molfile("") {
            Ok(molfile) => molfile,
            Err(error) => {
                assert!(
                    matches!(error, MoleculeError::Molfile { .. })
                        && ["P@", "C1"].iter().any(|s| text.contains(s)),
                    "{text}: {error}"
                );
                continue;
            }
        };
        let n = molecule.atoms().len();
        let m = molecule.bonds().len();
        let lines: Vec<&str> = molfile.lines().skip(4).collect();
        let number = |text: &str| text.trim().parse::<f64>().unwrap();
        let flat: Vec<[f64; 3]> =
            lines[..n].iter().map(|line| [number(&line[..10]), number(&line[10..20]), 0.0]).collect();
        let bonds: Vec<[usize; 4]> = lines[n..n + m]
            .iter()
            .map(|line| [0, 3, 6, 9].map(|k| number(&line[k..k + 3]) as usize))
            .collect();
        for mark in molecule.marks() {
            match mark.element {
                StereoElement::Centre(a) => {
                    let mut around: Vec<usize> = molecule.neighbours(a).map(|(b, _)| b).collect();
                    around.sort_unstable();
                    let lifted = |b: usize| -> [f64; 3] {
                        let wedge = bonds
                            .iter()
                            .find(|bond| bond[0] == a + 1 && bond[1] == b + 1)
                            .map_or(0, |bond| bond[3]);
                        let up = [0.0, 1.0, -1.0][[0, 1, 6].iter().position(|kind| *kind == wedge).unwrap()];
                        [flat[b][0] - flat[a][0], flat[b][1] - flat[a][1], up]
                    };
                    let mut at: Vec<[f64; 3]> = around.iter().map(|&b| lifted(b)).collect();
                    assert_eq!(at.iter().filter(|place| place[2] != 0.0).count(), 1, "{text}");
                    if at.len() == 3 {
                        at.insert(0, [0, 1, 2].map(|k| -at.iter().map(|place| place[k]).sum::<f64>()));
                    }
                    let [p, q, r] = [1, 2, 3].map(|i| [0, 1, 2].map(|k| at[i][k] - at[0][k]));
                    let volume = p[0] * (q[1] * r[2] - q[2] * r[1]) - p[1] * (q[0] * r[2] - q[2] * r[0])
                        + p[2] * (q[0] * r[1] - q[1] * r[0]);
                    assert_eq!(volume < 0.0, mark.positive, "{text}, atom {a}");
                    seen[0] += 1;
                }
                StereoElement::DoubleBond(k) => {
                    let bond = molecule.bonds()[k];
                    let side = |end: usize| {
                        let first = molecule
                            .neighbours(end)
                            .map(|(b, _)| b)
                            .filter(|b| *b != bond.other_end(end))
                            .min()
                            .unwrap();
                        let [p, q, r] = [bond.a, bond.b, first].map(|c| flat[c]);
                        (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])
                    };
                    assert_eq!(side(bond.a) * side(bond.b) > 0.0, mark.positive, "{text}, bond {k}");
                    let plain = molecule.without_stereo().coordinates();
                    wrong_if_flat += usize::from(plain != molecule.coordinates());
                    seen[1] += 1;
                }
            }
        }
    }
    assert!(seen[0] > 300 && seen[1] > 40 && wrong_if_flat > 10, "{seen:?} {wrong_if_flat}");
}
