//! Sums, products and powers of scores.

use gfn::{Error, Result};
use gfn_molecules::{LogWindow, Molecule, MoleculeScore, Product, WeightedSum};

/// Answers for one molecule, however many there are.
struct Short;

impl MoleculeScore for Short {
    fn log_scores(&self, _: &[Molecule]) -> Result<Vec<f64>> {
        Ok(vec![0.0])
    }
}

#[test]
fn sums_and_products_by_hand() {
    let molecules: Vec<_> = ["C", "CC", "C1CC1"].iter().map(|text| Molecule::from_smiles(text).unwrap()).collect();
    let rings = |molecule: &Molecule| molecule.n_rings() as f64;
    let atoms = |molecule: &Molecule| molecule.atoms().len() as f64;
    let product = Product::new().times(rings).times(atoms);
    let infinite = f64::NEG_INFINITY;
    assert_eq!(product.log_scores(&molecules).unwrap(), [infinite, infinite, 3f64.ln()]);
    assert_eq!(Product::new().log_scores(&molecules).unwrap(), [0.0; 3]);
    let sum = WeightedSum::new().plus(3.0, rings).unwrap().plus(1.0, atoms).unwrap();
    let found = sum.log_scores(&molecules).unwrap();
    assert!(found.iter().zip([1f64, 2.0, 6.0]).all(|(found, sum)| (found - sum.ln()).abs() < 1e-12));
    assert_eq!(WeightedSum::new().log_scores(&molecules).unwrap(), [infinite; 3]);
    // 0 to the power 0 is 1.
    assert_eq!(rings.to_the(0.0).unwrap().log_scores(&molecules).unwrap(), [0.0; 3]);
    assert!(rings.to_the(f64::NAN).is_err() && rings.clamped(2.0, 1.0).is_err());
    assert!(WeightedSum::new().plus(0.0, rings).is_err());
    // NaN is an error everywhere: it is neither the best score, in a window, nor a score of 0, in a sum.
    let window = LogWindow::new(|_: &Molecule| f64::NAN, 0.0, 1.0, 1.0).unwrap();
    let one = |_: &Molecule| 1.0;
    let sums = [WeightedSum::new().plus(1.0, window), WeightedSum::new().plus(1.0, one).unwrap().plus(1.0, window)];
    for sum in sums {
        assert!(matches!(sum.unwrap().log_scores(&molecules), Err(Error::NonFinite { row: 0, .. })));
    }
    assert!(matches!(window.log_scores(&molecules), Err(Error::NonFinite { row: 0, .. })));
    // So is plus infinity, from a score of 0 to a negative power or from an overflow: methane has no ring.
    for power in [-1.0, -1e308] {
        assert!(matches!(rings.to_the(power).unwrap().log_scores(&molecules), Err(Error::NonFinite { row: 0, .. })));
    }
    assert!(matches!(
        atoms.to_the(f64::MAX).unwrap().to_the(2.0).unwrap().log_scores(&molecules[1..]),
        Err(Error::NonFinite { .. })
    ));
    assert_eq!(atoms.to_the(-1.0).unwrap().log_scores(&molecules).unwrap(), [0.0, -(2f64.ln()), -(3f64.ln())]);
    for score in [&Product::new().times(Short) as &dyn MoleculeScore, &WeightedSum::new().plus(1.0, Short).unwrap()] {
        assert!(matches!(score.log_scores(&molecules), Err(Error::Shape { .. })));
    }
    let negative = |_: &Molecule| -1.0;
    assert!(negative.log_scores(&molecules).unwrap_err().to_string().contains("-1"));
}
