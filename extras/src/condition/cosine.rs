/// Computes the cosine of the angle between two vectors. Returns `None` if one of the vectors is zero.
#[must_use]
pub fn cosine_of(a: &[f64], b: &[f64]) -> Option<f64> {
    // Each vector is divided by its largest entry, so that squares neither overflow nor underflow.
    let unit = |v: &[f64]| -> Option<Vec<f64>> {
        let largest = v.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        let scaled: Vec<f64> = v.iter().map(|x| x / largest).collect();
        let norm = scaled.iter().map(|x| x * x).sum::<f64>().sqrt();
        (largest > 0.0).then(|| scaled.into_iter().map(|x| x / norm).collect())
    };
    Some(unit(a)?.iter().zip(unit(b)?).map(|(x, y)| x * y).sum())
}
