//! Contour lines of a function on a grid.

/// Contour lines of a function over a rectangle, as line segments from one edge of a grid cell to another (marching
/// squares). [`Panel::outlines`](super::Panel::outlines) draws them.
///
/// `values` holds the function at `columns` points along x for each of the points along y, y by y, between the given
/// ends. Values that aren't finite interrupt lines.
///
/// ```
/// let bowl: Vec<f64> = (0..9).map(|k| (f64::from(k % 3) - 1.0).powi(2) + (f64::from(k / 3) - 1.0).powi(2)).collect();
/// let lines = gfn_plot::contours(&bowl, 3, (-1.0, 1.0), (-1.0, 1.0), &[0.5]);
/// assert_eq!(lines.len(), 4, "a square around the middle");
/// ```
#[must_use]
pub fn contours(values: &[f64], columns: usize, x: (f64, f64), y: (f64, f64), heights: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let rows = values.len().checked_div(columns).unwrap_or(0);
    let mut lines = Vec::new();
    if columns < 2 || rows < 2 {
        return lines;
    }
    let along = |(low, high): (f64, f64), k: f64, n: usize| low + (high - low) * k / (n - 1) as f64;
    let place = |(i, j): (f64, f64)| (along(x, i, columns), along(y, j, rows));
    for j in 0..rows - 1 {
        for i in 0..columns - 1 {
            let corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)];
            let at = corners.map(|(i, j)| values[j * columns + i]);
            if !at.iter().all(|value| value.is_finite()) {
                continue;
            }
            for &height in heights {
                let crossing = |k: usize| {
                    let (a, b) = (at[k], at[(k + 1) % 4]);
                    let ((i, j), (p, q)) = (corners[k], corners[(k + 1) % 4]);
                    let part = (height - a) / (b - a);
                    let between = |from: usize, to: usize| from as f64 + part * (to as f64 - from as f64);
                    ((a < height) != (b < height)).then(|| place((between(i, p), between(j, q))))
                };
                let crossed: Vec<(f64, f64)> = (0..4).filter_map(crossing).collect();
                // Two crossings are one segment; four, around a saddle, are two.
                lines.extend(crossed.chunks_exact(2).map(<[_]>::to_vec));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_cone_are_circles() {
        let n = 41;
        let at = |k: usize| -2.0 + 4.0 * k as f64 / (n - 1) as f64;
        let cone: Vec<f64> = (0..n).flat_map(|j| (0..n).map(move |i| at(i).hypot(at(j)))).collect();
        let lines = contours(&cone, n, (-2.0, 2.0), (-2.0, 2.0), &[1.0, 5.0]);
        assert!(lines.len() > 40);
        assert!(lines.iter().flatten().all(|&(x, y)| (x.hypot(y) - 1.0).abs() < 0.01));
        let length: f64 = lines.iter().map(|line| (line[0].0 - line[1].0).hypot(line[0].1 - line[1].1)).sum();
        assert!((length - std::f64::consts::TAU).abs() < 0.05, "{length}");
        assert!(contours(&[f64::NAN; 4], 2, (0.0, 1.0), (0.0, 1.0), &[0.5]).is_empty());
        assert!(contours(&[], 0, (0.0, 1.0), (0.0, 1.0), &[0.5]).is_empty());
    }
}
