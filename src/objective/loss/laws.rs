//! The laws of regression losses.

use tch::{Kind, Tensor, with_grad};

use super::RegressionLoss;
use crate::tensor::{catch_tch, to_host};
use crate::{Error, Result};

/// The name of the checked code in an error of libtorch.
const CODE: &str = "a regression loss";
/// The residuals at which a loss is checked. No loss of the library has a kink at any of them but 0.
const RESIDUALS: [f64; 9] = [0.0, -3.0, -1.1, -0.37, -0.01, 0.01, 0.37, 1.1, 3.0];
/// Half the distance of the two residuals from whose losses a slope is estimated.
const STEP: f64 = 1e-5;
/// The largest difference that counts as rounding, relative to the larger of a value and 1.
const TOLERANCE: f64 = 1e-6;

/// Checks the laws of a [`RegressionLoss`] at nine residuals from -3 to 3: [`check`](RegressionLoss::check)
/// accepts its settings; [`apply`](RegressionLoss::apply) keeps shape and dtype, and has a gradient; losses
/// are finite, 0 at 0 and positive elsewhere; [`costs`](RegressionLoss::costs) returns the same losses, and
/// their derivatives equal the gradient and finite differences. The derivative at 0 must be finite, but
/// may be that of either side.
///
/// ```
/// use gfn::contract::check_regression;
/// use gfn::objective::RegressionLoss;
/// use tch::Tensor;
/// /// A wrong loss, which is negative for negative residuals.
/// #[derive(Debug)]
/// struct Cube;
/// impl RegressionLoss for Cube {
///     fn name(&self) -> &str {
///         "cube"
///     }
///     fn apply(&self, residuals: &Tensor) -> gfn::Result<Tensor> {
///         Ok(residuals.f_pow_tensor_scalar(3)?)
///     }
/// }
/// assert!(check_regression(&Cube).unwrap_err().to_string().contains("cube"));
/// ```
///
/// # Errors
/// [`Error::Contract`] for a broken law, with the name of the loss and the residual; the errors of
/// [`RegressionLoss::check`]; [`Error::External`] for an operation of libtorch that panics; the errors of
/// [`RegressionLoss::apply`].
pub fn check_regression(loss: &dyn RegressionLoss) -> Result<()> {
    loss.check()?;
    let residuals = Tensor::from_slice(&RESIDUALS).set_requires_grad(true);
    let losses = with_grad(|| catch_tch(CODE, || loss.apply(&residuals)))?;
    let refuse =
        |law, detail: String| Err(Error::contract(law, format!("the loss \"{}\" {detail}", loss.name())));
    if losses.size() != residuals.size() || losses.kind() != Kind::Double {
        let detail = format!("returns {:?} {:?} for 9 residuals in double", losses.size(), losses.kind());
        return refuse("a regression loss keeps the shape and the dtype of the residuals", detail);
    }
    if !losses.requires_grad() {
        let detail = "detaches or copies its argument".to_owned();
        return refuse("the result of a regression loss has a gradient", detail);
    }
    let slopes = Tensor::f_run_backward(&[losses.sum(Kind::Double)], &[&residuals], false, false)?;
    let shifted = |step: f64| Ok::<_, Error>(loss.costs(&RESIDUALS.map(|t| t + step))?.0);
    let [lower, upper] = [shifted(-STEP)?, shifted(STEP)?];
    let (costs, derivatives) = loss.costs(&RESIDUALS)?;
    if costs.len() != RESIDUALS.len() || derivatives.len() != RESIDUALS.len() || upper.len() != lower.len() {
        let detail =
            format!("returns {} losses and {} slopes for 9 residuals", costs.len(), derivatives.len());
        return refuse("`costs` of a regression loss returns a loss and a slope for each residual", detail);
    }
    for (i, ((t, value), slope)) in
        RESIDUALS.into_iter().zip(to_host(&losses)).zip(to_host(&slopes[0])).enumerate()
    {
        let near = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * b.abs().max(1.0);
        if !value.is_finite() || !slope.is_finite() {
            let detail = format!("has the value {value} and the slope {slope} at the residual {t}");
            return refuse("a regression loss is finite and has a finite slope", detail);
        }
        let is_valid = if t == 0.0 { value.abs() < 1e-12 } else { value > 0.0 };
        if !is_valid {
            return refuse(
                "a regression loss is 0 at the residual 0 and positive at any other residual",
                format!("is {value} at the residual {t}"),
            );
        }
        let cost = costs[i];
        let derivative = derivatives[i];
        if !near(cost, value) || !near(derivative, slope) {
            let detail = format!(
                "has the value {value} and the slope {slope} at the residual {t} by `apply`, but {cost} and \
                 {derivative} by `costs`"
            );
            return refuse("`apply` and `costs` of a regression loss agree", detail);
        }
        let difference = (upper[i] - lower[i]) / (2.0 * STEP);
        if t != 0.0 && (difference - slope).abs() > 1e-4 * slope.abs().max(1.0) {
            let detail =
                format!("changes by {difference} per unit at the residual {t}, but its slope is {slope}");
            return refuse("the slope of a regression loss is its derivative", detail);
        }
    }
    Ok(())
}
