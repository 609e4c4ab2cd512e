//! The arithmetic of an Adam update: for slices in one pass, which the compiler vectorises, and for other
//! tensors with tensor operations.

use tch::Tensor;

use crate::Result;
use crate::tensor::slices;

/// The constants of one update of one parameter. [`super::Adam`] has the equation.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    /// The clipping factor, by which the gradient is multiplied.
    pub(super) clip: f64,
    pub(super) beta1: f64,
    pub(super) beta2: f64,
    pub(super) eps: f64,
    /// The weight-decay factor, by which the parameter is multiplied.
    pub(super) decay: f64,
    /// The learning rate divided by the bias correction of the first moment.
    pub(super) step: f64,
    /// The reciprocal of the square root of the bias correction of the second moment.
    pub(super) scale: f64,
}

impl Rule {
    /// Updates a parameter and its moments, and sets the gradient to zero. All slices must have the same
    /// length.
    ///
    /// Most of the time is spent on square roots and divisions. With AVX2 registers the update is 1.7 times
    /// as fast, and the results are the same bit for bit.
    pub(super) fn apply(&self, p: &mut [f32], g: &mut [f32], m: &mut [f32], v: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            #[allow(unsafe_code, reason = "wide registers can only be detected at run time")]
            // SAFETY: the processor has AVX2, the only feature that the function requires.
            return unsafe { self.apply_wide(p, g, m, v) };
        }
        self.apply_narrow(p, g, m, v);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn apply_wide(&self, p: &mut [f32], g: &mut [f32], m: &mut [f32], v: &mut [f32]) {
        self.apply_narrow(p, g, m, v);
    }

    #[inline(always)]
    fn apply_narrow(&self, p: &mut [f32], g: &mut [f32], m: &mut [f32], v: &mut [f32]) {
        debug_assert!(p.len() == g.len() && p.len() == m.len() && p.len() == v.len());
        let clip = self.clip as f32;
        let beta1 = self.beta1 as f32;
        let beta2 = self.beta2 as f32;
        let rest1 = (1.0 - self.beta1) as f32;
        let rest2 = (1.0 - self.beta2) as f32;
        let decay = self.decay as f32;
        let step = self.step as f32;
        let scale = self.scale as f32;
        let eps = self.eps as f32;
        for (((p, g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
            let grad = *g * clip;
            *g = 0.0;
            *m = flush(beta1 * *m + rest1 * grad);
            *v = flush(beta2 * *v + rest2 * grad * grad);
            *p = *p * decay - step * *m / (v.sqrt() * scale + eps);
        }
    }

    /// Makes the update of [`apply`](Self::apply) for tensors, and sets the gradient to zero. f32 tensors on
    /// the host are updated as slices, and other tensors by tensor operations. Autograd isn't told that
    /// slices changed.
    pub(super) fn apply_to_tensors(
        &self,
        p: &mut Tensor,
        g: &mut Tensor,
        m: &mut Tensor,
        v: &mut Tensor,
    ) -> Result<()> {
        let pass = slices::write(p, g, |p, g| slices::write(m, v, |m, v| self.apply(p, g, m, v))).flatten();
        if pass.is_some() {
            return Ok(());
        }
        // Each operation costs a launch on a device, so factors of 1 are left out, and numerator and
        // denominator of the change are divided by `scale`.
        if self.clip != 1.0 {
            let _ = g.f_mul_scalar_(self.clip)?;
        }
        let _ = m.f_lerp_(g, 1.0 - self.beta1)?;
        // The square of a gradient may overflow although its share of the second moment doesn't.
        let _ = v.f_mul_scalar_(self.beta2)?.f_addcmul_(&g.f_mul_scalar(1.0 - self.beta2)?, g)?;
        let _ = g.f_zero_()?;
        let root = v.f_sqrt()?.f_add_scalar_(self.eps / self.scale)?;
        let change = m.f_div(&root)?.f_mul_scalar_(self.step / self.scale)?;
        if self.decay != 1.0 {
            let _ = p.f_mul_scalar_(self.decay)?;
        }
        let _ = p.f_sub_(&change)?;
        Ok(())
    }
}

/// Rounds denormal numbers to zero. Without this rounding the moments of a parameter with gradient 0 would be
/// denormal for many steps, and processors take about 100 times as long for denormal numbers.
#[inline]
fn flush(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0.0 } else { x }
}

/// Returns the sum of the squares of `values`. The sum is computed in f64, so that no square overflows, and
/// in the same order on every machine.
pub(super) fn sum_of_squares(values: &[f32]) -> f64 {
    const LANES: usize = 8;
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0f64; LANES];
    for chunk in chunks {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            let x = f64::from(x);
            *sum += x * x;
        }
    }
    let rest: f64 = rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_summed_whatever_the_length_and_size() {
        for n in [0usize, 1, 7, 8, 9, 100] {
            let values: Vec<f32> = (0..n).map(|i| i as f32 * 0.5 - 3.0).collect();
            let expected: f64 = values.iter().map(|&x| f64::from(x).powi(2)).sum();
            assert!((sum_of_squares(&values) - expected).abs() <= 1e-12 * expected.max(1.0));
        }
        assert!(sum_of_squares(&[1e30f32; 20]).is_finite());
        assert!(sum_of_squares(&[0.0, f32::NAN]).is_nan());
        assert!(sum_of_squares(&[f32::NEG_INFINITY; 9]).is_infinite());
    }

    #[test]
    fn wide_and_narrow_registers_give_the_same_bits() {
        let rule =
            Rule { clip: 0.7, beta1: 0.9, beta2: 0.999, eps: 1e-8, decay: 0.999, step: 1e-2, scale: 3.1 };
        let mut rng = crate::Rng::seeded(6);
        let mut draw = |scale: f64| -> Vec<f32> {
            let draws = (0..1003).map(|_| (scale * rng.normal()) as f32);
            draws.collect()
        };
        let mut a = [draw(1.0), draw(2.0), draw(0.1), draw(1e-3)];
        for v in &mut a[3] {
            *v = v.abs();
        }
        let before = a.clone();
        let mut b = a.clone();
        let [p, g, m, v] = &mut a;
        rule.apply(p, g, m, v);
        let [p, g, m, v] = &mut b;
        rule.apply_narrow(p, g, m, v);
        assert!(a == b && a[0] != before[0] && a[1] == [0.0; 1003]);
    }

    #[test]
    fn tensor_operations_equal_the_pass_over_slices() {
        for (clip, decay) in [(1.0, 1.0), (0.5, 0.9)] {
            let rule = Rule { clip, beta1: 0.9, beta2: 0.999, eps: 1e-8, decay, step: 0.1, scale: 3.1 };
            // The square of 1e20 overflows f32, but its product with 1 - beta2 doesn't.
            let numbers = [[1.0, -2.0, 0.5, 0.0], [0.3, 1e20, 0.0, -1e-6], [0.1, 0.2, -0.3, 0.0], [1e-3; 4]];
            let [p, g, m, v] = &mut numbers.map(|row| row.map(|x| x as f32));
            rule.apply(p, g, m, v);
            let expected = [*p, *g, *m, *v].concat();
            // Tensors with strides aren't accepted as slices.
            let mut tensors = numbers.map(|row| {
                let row = Tensor::from_slice(&row).to_kind(tch::Kind::Float);
                Tensor::stack(&[&row, &row], 1).select(1, 0)
            });
            let [p, g, m, v] = &mut tensors;
            rule.apply_to_tensors(p, g, m, v).unwrap();
            let found = tensors.iter().flat_map(crate::tensor::to_host);
            for (found, expected) in found.zip(expected) {
                let expected = f64::from(expected);
                assert!((found - expected).abs() <= 1e-5 * expected.abs(), "{found} {expected}");
            }
        }
    }

    #[test]
    fn moments_of_a_dead_unit_reach_zero() {
        let rule =
            Rule { clip: 1.0, beta1: 0.9, beta2: 0.999, eps: 1e-8, decay: 1.0, step: 1e-3, scale: 1.0 };
        let mut p = [0.5f32];
        let mut g = [0.0f32];
        let mut m = [1e-37f32];
        let mut v = [1.2e-38f32];
        for _ in 0..60 {
            rule.apply(&mut p, &mut g, &mut m, &mut v);
        }
        assert_eq!((m[0], v[0], p[0]), (0.0, 0.0, 0.5));
    }
}
