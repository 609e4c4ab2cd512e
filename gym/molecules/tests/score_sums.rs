//! Tests of scores that are products and powers of other scores.

use gfn::{Error, Result};
use gfn_molecules::{Molecule, MoleculeScore, Product};

/// A wrong score, which returns a single number for any number of molecules.
struct Short;

impl MoleculeScore for Short {
    fn log_scores(&self, _: &[Molecule]) -> Result<Vec<f64>> {
        Ok(vec![0.0])
    }
}

#[test]
fn products_and_powers_by_hand() {
    let molecules: Vec<_> =
        ["C", "CC", "C1CC1"].iter().map(|text| Molecule::from_smiles(text).unwrap()).collect();
    let rings = |molecule: &Molecule| molecule.n_rings() as f64;
    let atoms = |molecule: &Molecule| molecule.atoms().len() as f64;
    let product = Product::new().times(rings).times(atoms);
    let infinite = f64::NEG_INFINITY;
    assert_eq!(product.log_scores(&molecules).unwrap(), [infinite, infinite, 3f64.ln()]);
    assert_eq!(Product::new().log_scores(&molecules).unwrap(), [0.0; 3]);
    // A score of 0 to the power 0 must be 1, also for molecules without rings.
    assert_eq!(rings.to_the(0.0).unwrap().log_scores(&molecules).unwrap(), [0.0; 3]);
    assert!(rings.to_the(f64::NAN).is_err() && rings.clamped(2.0, 1.0).is_err());
    // A score of NaN must always be refused.
    let nan = |_: &Molecule| f64::NAN;
    assert!(matches!(Product::new().times(nan).log_scores(&molecules), Err(Error::NonFinite { row: 0, .. })));
    assert!(matches!(nan.log_scores(&molecules), Err(Error::NonFinite { row: 0, .. })));
    // Plus infinity must be refused, too. Methane has no ring, so a negative power of its number of rings is
    // infinite.
    for power in [-1.0, -1e308] {
        assert!(matches!(
            rings.to_the(power).unwrap().log_scores(&molecules),
            Err(Error::NonFinite { row: 0, .. })
        ));
    }
    assert!(matches!(
        atoms.to_the(f64::MAX).unwrap().to_the(2.0).unwrap().log_scores(&molecules[1..]),
        Err(Error::NonFinite { .. })
    ));
    assert_eq!(
        atoms.to_the(-1.0).unwrap().log_scores(&molecules).unwrap(),
        [0.0, -(2f64.ln()), -(3f64.ln())]
    );
    assert!(matches!(Product::new().times(Short).log_scores(&molecules), Err(Error::Shape { .. })));
    let negative = |_: &Molecule| -1.0;
    assert!(negative.log_scores(&molecules).unwrap_err().to_string().contains("-1"));
}
