//! Tests of the logarithm, the exponential and ln Gamma of the box environment. The modules are private in
//! gfn-gym, so this test program compiles their files itself.

use lanes::{exp, ln};
use log_gamma::LogGamma;

#[path = "../src/boxes/lanes.rs"]
mod lanes;
#[path = "../src/boxes/log_gamma.rs"]
mod log_gamma;

#[test]
fn logarithms_are_those_of_the_standard_library() {
    let mut x = f64::MIN_POSITIVE;
    while x < 1e300 {
        assert!((ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs(), "{x}: {} {}", ln(x), x.ln());
        x *= 1.0137;
    }
    for x in [1.0, 1.0 + f64::EPSILON, 1.0 - f64::EPSILON, 0.999, 1.001, 2.0, 0.5, f64::MAX] {
        assert!((ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs(), "{x}: {} {}", ln(x), x.ln());
    }
}

#[test]
fn exponentials_are_those_of_the_standard_library() {
    let mut x = -708.0;
    while x < 709.0 {
        assert!((exp(x) - x.exp()).abs() <= 4e-16 * x.exp(), "{x}: {} {}", exp(x), x.exp());
        x += 0.0137;
    }
    assert_eq!(exp(0.0), 1.0);
    assert_eq!(exp(f64::NEG_INFINITY), exp(-708.0));
    assert_eq!(exp(f64::INFINITY), exp(709.0));
    assert!(exp(f64::NAN).is_nan());
}

#[test]
fn log_gamma_and_digamma_are_right_over_the_whole_range() {
    let mut x = 1e-3;
    while x < 1e7 {
        let LogGamma { value, product, slope } = LogGamma::at(x);
        let value = value - product.ln();
        let expected = libm::lgamma(x);
        assert!(
            (value - expected).abs() <= 1e-13 * expected.abs().max(x).max(10.0),
            "{x}: {value} {expected}"
        );
        // The digamma function psi must satisfy psi(x + 1) = psi(x) + 1 / x, also if x + 1 is large enough
        // for Stirling's series, but x isn't.
        let next = LogGamma::at(x + 1.0).slope;
        assert!(
            (next - slope - 1.0 / x).abs() <= 2e-13 * (1.0 / x).max(slope.abs()).max(1.0),
            "{x}: {slope} {next}"
        );
        x *= 1.037;
    }
    const EULER: f64 = 0.577_215_664_901_532_9;
    assert!((LogGamma::at(1.0).slope + EULER).abs() < 1e-13);
    assert!((LogGamma::at(0.5).slope + EULER + 2.0 * 2f64.ln()).abs() < 1e-13);
    // The exact value of ln Gamma(1/2) is ln sqrt(pi).
    let half = LogGamma::at(0.5);
    assert!((half.value - half.product.ln() - 0.5 * std::f64::consts::PI.ln()).abs() < 1e-13);
}
