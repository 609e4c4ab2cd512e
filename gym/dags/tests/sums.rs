//! Tests of numbers with a wide range of exponents, and of cancellation in sums over sinks (nodes without
//! children). The two modules are private in gfn-dags, so this test program compiles their files itself.

#![allow(dead_code, reason = "tests call less of them than gfn-dags does")]

use gfn::Error;

use sinks::ParentPosteriors;
use wide::Wide;

#[path = "../src/posterior/sinks.rs"]
mod sinks;
#[path = "../src/posterior/wide.rs"]
mod wide;

#[test]
fn sums_keep_what_doubles_lose() {
    let third = Wide::ONE + Wide::exp(-60.0);
    assert_eq!((third + -Wide::ONE).over(Wide::exp(-60.0)), 1.0);
    // The product (1 + e)(1 - e) must be 1 - e^2, also in the digits that a number of type `f64` doesn't
    // have.
    let e = Wide::exp(-30.0);
    let product = (Wide::ONE + e) * (Wide::ONE + -e);
    assert!(((Wide::ONE + -product).over(e * e) - 1.0).abs() < 1e-5);
}

#[test]
fn exponents_have_no_end() {
    let mut tiny = Wide::ONE;
    for _ in 0..20 {
        tiny = tiny * Wide::exp(-700.5);
    }
    assert!((tiny.ln() + 14_010.0).abs() < 1e-9);
    assert!(((tiny * Wide::exp(14_010.0)).over(Wide::ONE) - 1.0).abs() < 1e-10);
    assert_eq!((tiny + Wide::ONE).over(Wide::ONE), 1.0);
    assert_eq!(tiny.over(Wide::ONE), 0.0);
    assert!(((tiny + tiny).over(tiny) - 2.0).abs() < 1e-15);
    assert!(Wide::exp(f64::NEG_INFINITY).is_zero());
    let sum = Wide::exp(100.0) + Wide::exp(-80.0);
    assert!(((sum + -Wide::exp(100.0)).over(Wide::exp(-80.0)) - 1.0).abs() < 1e-12);
}

/// Checks that a sum is refused if too many digits are lost by cancellation. If all terms are positive, a sum
/// over few nodes loses too few digits. The test therefore uses a negative term.
#[test]
fn what_cancellation_leaves_is_checked() {
    // A node without a parent contributes the factor 1 to the reward of a graph of two nodes. A node whose
    // parent is the other node contributes x or y. The sum of the rewards of all acyclic graphs is 1 + x + y.
    let zero = Wide::ZERO;
    let one = Wide::ONE;
    let sum = |x, y| ParentPosteriors::sum(2, &[one, zero, y, zero, one, x, zero, zero]);
    let sound = sum(one, one).unwrap();
    assert!((sound.log_total - 3f64.ln()).abs() < 1e-15 && sound.deviation < 1e-15);
    // With y = -1 the sum 1 + x + y is x. If x is e^-0.69 = 0.5, the graph without edges would have the
    // probability 1 / 0.5 = 2. If x is e^-92 = 10^-40, it is lost when it is added to 1. Both sums must be
    // refused.
    for log_x in [-0.69, -92.0] {
        let error = sum(Wide::exp(log_x), -one).err().unwrap();
        assert!(matches!(error, Error::Contract { .. }), "{error}");
    }
}
