/// Returns the log of a sum of exponentials of numbers on the host, without overflow or underflow.
///
/// The result is minus infinity for an empty list, infinity if a number is infinity and none is NaN, and NaN
/// if a number is NaN.
///
/// ```
/// use gfn::tensor::log_sum_exp;
/// assert!((log_sum_exp([1e4, 1e4]) - (1e4 + 2f64.ln())).abs() < 1e-11);
/// assert_eq!(log_sum_exp([]), f64::NEG_INFINITY);
/// ```
pub fn log_sum_exp(values: impl IntoIterator<Item = f64, IntoIter: Clone>) -> f64 {
    let values = values.into_iter();
    // The maximum is computed by a fold, because `f64::max` would ignore NaN.
    let max = values
        .clone()
        .fold(f64::NEG_INFINITY, |max, value| if max.is_nan() || value <= max { max } else { value });
    if max.is_finite() { max + values.map(|value| (value - max).exp()).sum::<f64>().ln() } else { max }
}

#[cfg(test)]
mod tests {
    use super::log_sum_exp;

    #[test]
    fn sums_of_what_is_not_finite() {
        let [inf, nan] = [f64::INFINITY, f64::NAN];
        assert_eq!(log_sum_exp([-inf, -inf]), -inf);
        assert_eq!(log_sum_exp([-inf, 3.0]), 3.0);
        assert_eq!(log_sum_exp([1.0, inf, -inf]), inf);
        for with_nan in [[nan, 1.0, inf], [1.0, nan, 2.0], [inf, 1.0, nan]] {
            assert!(log_sum_exp(with_nan).is_nan());
        }
    }
}
