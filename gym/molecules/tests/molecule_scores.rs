//! Tests of scores that a configuration defines: the shapes and powers of their factors, compared with
//! numbers computed by hand, and errors.

use gfn::Error;
use gfn_molecules::{
    Factor, Fingerprint, Molecule, MoleculeScore, Product, Property, Ranking, ScoreConfig, Shape,
};

fn molecules(texts: &[&str]) -> Vec<Molecule> {
    texts.iter().map(|text| Molecule::from_smiles(text).unwrap()).collect()
}

/// A score that is a window of a property, computed from its definition: 1 if the property lies inside the
/// window, and `exp(-distance / width)` outside.
struct Window {
    property: fn(&Molecule) -> f64,
    least: f64,
    most: f64,
    width: f64,
}

impl MoleculeScore for Window {
    fn log_scores(&self, molecules: &[Molecule]) -> gfn::Result<Vec<f64>> {
        let distance = |value: f64| (self.least - value).max(value - self.most).max(0.0);
        Ok(molecules.iter().map(|molecule| 0.0 - distance((self.property)(molecule)) / self.width).collect())
    }
}

fn of_rings(shape: Shape, power: f64) -> ScoreConfig {
    ScoreConfig { factors: vec![Factor { shape, power, ..Factor::from_property(Property::Rings) }] }
}

#[test]
fn shapes_and_powers_by_hand() {
    // The three molecules have 0, 1 and 2 rings.
    let given = molecules(&["CC", "C1CC1", "c1ccc2ccccc2c1"]);
    let logs = |shape, power| of_rings(shape, power).build().unwrap().log_scores(&given).unwrap();
    let none = f64::NEG_INFINITY;
    assert_eq!(logs(Shape::Value, 1.0), [none, 0.0, 2f64.ln()]);
    assert_eq!(logs(Shape::Value, 0.0), [0.0; 3]);
    assert_eq!(logs(Shape::Exponential, 2.0), [0.0, 2.0, 4.0]);
    assert_eq!(logs(Shape::Linear { zero: 2.0, one: 0.0 }, 1.0), [0.0, 0.5f64.ln(), none]);
    let window = Window { property: |molecule| molecule.n_rings() as f64, least: 0.0, most: 0.5, width: 2.0 };
    assert_eq!(
        logs(Shape::Window { least: 0.0, most: 0.5, width: 2.0 }, 1.0),
        window.log_scores(&given).unwrap()[..]
    );
    assert_eq!(
        logs(Shape::Limit { least: Some(1.0), most: Some(1.0), otherwise: 0.0 }, 1.0),
        [none, 0.0, none]
    );
    assert_eq!(
        logs(Shape::Limit { least: None, most: Some(1.0), otherwise: 0.5 }, 1.0),
        [0.0, 0.0, 0.5f64.ln()]
    );
    // The expected scores are the products 1 ring times 3 atoms, and 2 rings times 10 atoms.
    let both =
        ScoreConfig { factors: [Property::Rings, Property::HeavyAtoms].map(Factor::from_property).to_vec() };
    let found = both.build().unwrap().log_scores(&given[1..]).unwrap();
    assert!((found[0] - 3f64.ln()).abs() < 1e-12 && (found[1] - 20f64.ln()).abs() < 1e-12);
    assert_eq!(ScoreConfig::default().build().unwrap().log_scores(&given).unwrap(), [0.0; 3]);
}

/// Tests that building a score refuses a negative power of a factor that can be 0, and that no logarithm is
/// plus infinity or NaN.
#[test]
fn a_factor_of_zero_has_no_negative_power() {
    let limit = |otherwise| Shape::Limit { least: None, most: Some(-1.0), otherwise };
    for shape in [limit(0.0), Shape::Linear { zero: 0.0, one: 1.0 }] {
        let error = of_rings(shape, -1.0).build().unwrap_err();
        assert!(matches!(error, Error::Config { setting: "the power of a factor", .. }), "{error}");
        assert!(of_rings(shape, 1.0).build().is_ok() && of_rings(shape, 0.0).build().is_ok());
    }
    let given = molecules(&["CC", "C1CC1", "c1ccc2ccccc2c1"]);
    assert_eq!(of_rings(limit(0.5), -1.0).build().unwrap().log_scores(&given).unwrap(), [2f64.ln(); 3]);
    // The score is 1 divided by the number of rings. Ethane has no ring, so its score would be infinite and
    // must be refused. The other molecules have rings.
    let inverse = of_rings(Shape::Value, -1.0).build().unwrap();
    let error = inverse.log_scores(&given).unwrap_err();
    assert!(matches!(error, Error::NonFinite { what: "rings", row: 0, .. }), "{error}");
    assert_eq!(inverse.log_scores(&given[1..]).unwrap(), [0.0, -(2f64.ln())]);
    // In these cases the logarithm of a score overflows: a negative power makes it infinite, and two powers
    // of opposite signs make it NaN.
    let window = |power| Factor {
        power,
        ..of_rings(Shape::Window { least: 1.0, most: 1.0, width: 1e-300 }, 1.0).factors[0].clone()
    };
    for powers in [vec![-1e300], vec![1e300, -1e300]] {
        let config = ScoreConfig { factors: powers.into_iter().map(window).collect() };
        let error = config.build().unwrap().log_scores(&given).unwrap_err();
        assert!(matches!(error, Error::NonFinite { what: "rings", row: 0, .. }), "{error}");
    }
}

/// Tests that scores selected by name equal their definitions to the last bit.
#[test]
fn scores_by_name() {
    let given = molecules(&["C", "CCO", "O", "c1ccc2ccccc2c1", "CC(=O)Nc1ccc(O)cc1", "OCC1OC(O)C(O)C(O)C1O"]);
    let of = |name: &str| ScoreConfig::from_name(name).unwrap().build().unwrap().log_scores(&given).unwrap();
    let logs = |score: &dyn MoleculeScore| score.log_scores(&given).unwrap();
    assert_eq!(of("constant"), [0.0; 6]);
    assert_eq!(of("heteroatoms"), logs(&|molecule: &Molecule| 0.1 + molecule.heteroatom_share()));
    assert_eq!(of("rings"), logs(&|molecule: &Molecule| (molecule.n_rings() as f64).exp()));
    assert_eq!(of("hydrogen_bonds"), logs(&|m: &Molecule| ((m.n_donors() + m.n_acceptors()) as f64).exp()));
    let weight = Window { property: Molecule::weight, least: 100.0, most: 300.0, width: 50.0 };
    let surface = Window { property: Molecule::polar_surface, least: 40.0, most: 90.0, width: 20.0 };
    assert_eq!(of("drug_like"), logs(&Product::new().times(weight).times(surface)));
    assert!(
        ScoreConfig::NAMES.iter().all(|name| ScoreConfig::from_name(name).is_some())
            && ScoreConfig::from_name("qed").is_none()
    );
}

#[test]
fn all_that_a_file_says_is_read_again() {
    let text = r#"
        [[factors]]
        property = "weight"
        shape = { window = { least = 100.0, most = 300.0, width = 50.0 } }
        [[factors]]
        property = { similarity = { to = "c1ccccc1" } }
        power = 2.0
        [[factors]]
        property = { substructures = { smarts = ["[#8][#8]"], file = "pains.csv" } }
        shape = { limit = { most = 0.0 } }
    "#;
    let config: ScoreConfig = toml::from_str(text).unwrap();
    assert_eq!(
        config.factors[1],
        Factor { power: 2.0, ..Factor::from_property(Property::Similarity { to: "c1ccccc1".into() }) }
    );
    assert_eq!(config.factors[2].shape, Shape::Limit { least: None, most: Some(0.0), otherwise: 0.0 });
    assert_eq!(
        serde_json::from_str::<ScoreConfig>(&serde_json::to_string(&config).unwrap()).unwrap(),
        config
    );
    // The name of each property must be the name in the file format.
    for factor in &config.factors {
        let said = serde_json::to_value(&factor.property).unwrap();
        let name = said.as_str().unwrap_or_else(|| said.as_object().unwrap().keys().next().unwrap());
        assert_eq!(name, factor.property.name());
    }
    for wrong in [
        "property = 'wieght'",
        "property = 'weight'\npowr = 2.0",
        "property = { similarity = { of = 'C' } }",
        "power = 1.0",
    ] {
        assert!(toml::from_str::<ScoreConfig>(&format!("[[factors]]\n{wrong}")).is_err(), "{wrong}");
    }
}

#[test]
fn what_makes_no_score_is_refused() {
    let nan = f64::NAN;
    for shape in [
        Shape::Window { least: 1.0, most: 0.0, width: 1.0 },
        Shape::Window { least: 0.0, most: 1.0, width: 0.0 },
        Shape::Window { least: 0.0, most: nan, width: 1.0 },
        Shape::Linear { zero: 1.0, one: 1.0 },
        Shape::Linear { zero: nan, one: 1.0 },
        Shape::Limit { least: None, most: None, otherwise: 0.0 },
        Shape::Limit { least: Some(2.0), most: Some(1.0), otherwise: 0.0 },
        Shape::Limit { least: Some(nan), most: None, otherwise: 0.0 },
        Shape::Limit { least: None, most: Some(1.0), otherwise: -1.0 },
    ] {
        assert!(matches!(of_rings(shape, 1.0).build(), Err(Error::Config { .. })), "{shape:?}");
    }
    assert!(of_rings(Shape::Value, nan).build().is_err());
    let reference = Factor::from_property(Property::Similarity { to: "C(".into() });
    let error = ScoreConfig { factors: vec![reference] }.build().unwrap_err();
    assert!(error.to_string().contains("C("), "{error}");
    if cfg!(not(feature = "descriptors")) {
        let error = ScoreConfig { factors: vec![Factor::from_property(Property::Qed)] }.build().unwrap_err();
        assert!(error.to_string().contains("qed") && error.to_string().contains("`descriptors`"), "{error}");
    }
}

#[test]
fn molecules_are_ranked_once_each() {
    let given = molecules(&["C1CC1", "CCCCO", "OCCCC", "CC1CC1", "CCCCCO", "c1ccccc1"]);
    let ranking = Ranking::new(&given, &[1.0, 3.0, 9.0, 2.0, 2.5, 2.0]).unwrap();
    let names =
        |ranking: &Ranking| ranking.entries().iter().map(|entry| entry.molecule.smiles()).collect::<Vec<_>>();
    let all: Vec<String> = [1, 4, 3, 5, 0].map(|i: usize| given[i].smiles()).to_vec();
    assert_eq!(names(&ranking), all);
    assert_eq!(names(&ranking.best(2)), all[..2]);
    let few = [0, 2, 3].map(|k: usize| all[k].clone());
    // The two alcohols are the most similar pair. The cyclopropanes share a scaffold, and the chains share
    // the empty scaffold.
    let alike = Fingerprint::from_molecule(&given[1]).tanimoto(&Fingerprint::from_molecule(&given[4]));
    assert!(!names(&ranking.diverse(9, alike).unwrap()).contains(&all[1]));
    assert_eq!(names(&ranking.diverse(9, alike + 1e-9).unwrap()), all);
    assert_eq!(names(&ranking.best_per_scaffold(1)), few);
    assert_eq!(names(&ranking.best_per_scaffold(2)), all);
    assert!(ranking.diverse(9, 0.0).is_err());
    let two =
        |molecules: &[Molecule]| Ok(molecules.iter().map(|molecule| vec![molecule.weight(), 1.0]).collect());
    let wide = ranking.clone().with_columns(&["weight", "one"], two).unwrap();
    assert!(wide.csv().starts_with("smiles,log_score,weight,one\nCCCCO,3,74."), "{}", wide.csv());
    assert!(wide.sdf().unwrap().starts_with("1\n"));
    let html = wide.html(2).unwrap();
    assert_eq!((html.matches("<svg").count(), html.matches("<tr>").count()), (2, 3));
    assert!(html.ends_with("<p>the first 2 of 5</p>"));
    assert!(matches!(ranking.clone().with_columns(&["weight"], two), Err(Error::Shape { .. })));
    assert!(matches!(Ranking::new(&given, &[1.0]), Err(Error::Shape { .. })));
    assert!(matches!(Ranking::new(&given[..1], &[f64::NAN]), Err(Error::NonFinite { .. })));
}
