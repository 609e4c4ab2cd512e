//! Pareto fronts are compared with their definition.

use gfn::Error;
use gfn::env::Reals;
use gfn_extras::pareto::pareto_front;
use proptest::prelude::*;

proptest! {
    #[test]
    fn the_front_is_what_its_definition_says(rows in proptest::collection::vec([0u8..5, 0..5, 0..5], 0..40)) {
        let points = Reals::from_rows(rows.iter().map(|row| row.map(f64::from)));
        let front = pareto_front(&points).unwrap();
        for (i, row) in rows.iter().enumerate() {
            let above = |other: &[u8; 3]| other != row && (0..3).all(|k| other[k] >= row[k]);
            let first = rows.iter().position(|other| other == row) == Some(i);
            prop_assert_eq!(front.contains(&i), first && !rows.iter().any(above));
        }
    }
}

#[test]
fn bad_objectives_are_refused() {
    let bad = Reals::from_rows([[1.0, 2.0], [f64::NAN, 0.0]]);
    assert!(matches!(pareto_front(&bad), Err(Error::NonFinite { row: 1, .. })));
    let infinite = Reals::from_rows([[f64::INFINITY]]);
    assert!(pareto_front(&infinite).is_err());
    assert!(pareto_front(&Reals::filled(2, 0, 0.0)).unwrap().is_empty());
    // The objectives 0 and -0 must be equal.
    assert_eq!(pareto_front(&Reals::from_rows([[-0.0, 1.0], [0.0, 1.0]])).unwrap(), [0]);
}
