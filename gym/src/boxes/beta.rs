//! Log-densities of many Beta distributions at once, with derivatives.
//!
//! With libtorch the densities would need about forty operations in f64 on tensors `[states, components]`,
//! and the gradient would need most of these operations again. Each operation would read and write memory.
//! Here a single pass on the host computes values and derivatives in a fraction of that time.

use super::dist::BetaMixtures;
use super::lanes::{exp, ln};
use super::log_gamma::LogGamma;

/// The number of distributions that are computed together in vector registers.
const BLOCK: usize = 32;

/// The parameters of many Beta distributions. The log-density at u is `(alpha - 1) ln u + (beta - 1) ln(1 -
/// u) + log_norm`.
pub(super) struct Betas {
    /// The alpha parameters and the beta parameters of the distributions.
    pub(super) concentrations: [Vec<f64>; 2],
    /// The constant -ln B(alpha, beta) of each log-density, B being the Beta function.
    pub(super) log_norms: Vec<f64>,
    /// The derivatives of `log_norms` with respect to alpha and beta.
    pub(super) by_concentrations: [Vec<f64>; 2],
    /// The derivative of each alpha and beta with respect to the network output from which the parameter is
    /// computed.
    pub(super) slopes: [Vec<f64>; 2],
}

impl Betas {
    /// Computes distributions from their raw alphas and raw betas, the network outputs from which alpha and
    /// beta are computed. The two lists have equal length.
    #[inline(always)]
    pub(super) fn new(mixtures: &BetaMixtures, [alphas, betas]: [&[f64]; 2]) -> Self {
        let empty = || Vec::with_capacity(alphas.len());
        let pair = || [empty(), empty()];
        let mut out =
            Self { concentrations: pair(), log_norms: empty(), by_concentrations: pair(), slopes: pair() };
        for (alphas, betas) in alphas.chunks(BLOCK).zip(betas.chunks(BLOCK)) {
            let n = alphas.len();
            let mut raw = [[0.0; BLOCK]; 2];
            raw[0][..n].copy_from_slice(alphas);
            raw[1][..n].copy_from_slice(betas);
            let mut block = [[0.0; BLOCK]; 7];
            Self::block(mixtures, &raw, &mut block);
            let [alphas, betas] = &mut out.concentrations;
            let ([by_alphas, by_betas], [of_alphas, of_betas]) =
                (&mut out.by_concentrations, &mut out.slopes);
            let rows = [alphas, betas, &mut out.log_norms, by_alphas, by_betas, of_alphas, of_betas];
            for (row, values) in rows.into_iter().zip(&block) {
                row.extend_from_slice(&values[..n]);
            }
        }
        out
    }

    #[inline(always)]
    fn block(mixtures: &BetaMixtures, raw: &[[f64; BLOCK]; 2], out: &mut [[f64; BLOCK]; 7]) {
        let min = mixtures.min_concentration;
        let range = mixtures.max_concentration - mixtures.min_concentration;
        // The loop uses plain indices, because the compiler doesn't vectorise it with iterators.
        for i in 0..BLOCK {
            let shares = [raw[0][i], raw[1][i]].map(|raw| 1.0 / (1.0 + exp(-raw)));
            let [alpha, beta] = shares.map(|share| min + range * share);
            let of_alpha = LogGamma::at(alpha);
            let of_beta = LogGamma::at(beta);
            let of_both = LogGamma::at(alpha + beta);
            out[0][i] = alpha;
            out[1][i] = beta;
            out[2][i] = of_both.value - of_alpha.value - of_beta.value
                + ln(of_alpha.product * of_beta.product / of_both.product);
            out[3][i] = of_both.slope - of_alpha.slope;
            out[4][i] = of_both.slope - of_beta.slope;
            out[5][i] = range * shares[0] * (1.0 - shares[0]);
            out[6][i] = range * shares[1] * (1.0 - shares[1]);
        }
    }
}
