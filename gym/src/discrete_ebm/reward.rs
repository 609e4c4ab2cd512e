use gfn::env::{Reward, TensorReward, VectorStates};
use gfn::{Error, Result};
use tch::{Device, Kind, Tensor};

use super::lattice;
use crate::rewards::{self, DeviceTables};

/// The reward of the Ising model: `log R = alpha * sum over i, j of J_ij s_i s_j` with spins `s = 2 x - 1`.
/// The energy is `-s^T J s`.
///
/// The sum is over ordered pairs, so that with a symmetric `J` each bond counts twice, and the diagonal adds
/// a constant. The partial reward of an unfinished state is computed by the same formula, with 0 for each
/// unset spin ([`partial_log_reward`](Reward::partial_log_reward)).
///
/// ```
/// use gfn::env::Reward;
/// use gfn_gym::discrete_ebm::{DiscreteEbm, IsingReward};
/// let ebm = DiscreteEbm::new(2)?;
/// let reward = IsingReward::with_equal_couplings(2, 1.0)?;
/// let states = ebm.states_of(&[[false, false], [false, true]])?;
/// assert_eq!(reward.log_reward(&states, None)?, [4.0, 0.0]);
/// # Ok::<(), gfn::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct IsingReward {
    n: usize,
    alpha: f64,
    /// The nonzero couplings of each spin i, as pairs of the other spin's index j and a number. The number is
    /// `J_ij + J_ji` for a later spin j, and `J_ii` for spin i itself.
    couplings: Vec<Vec<(usize, f64)>>,
    /// The side of the lattice and its coupling. `None` if the couplings don't come from a lattice.
    lattice: Option<(usize, f64)>,
    tables: DeviceTables<1>,
}

impl IsingReward {
    /// The largest number of spins for which all states are enumerated to compute log Z.
    const MAX_ENUMERATED: usize = 24;

    /// Builds the reward from couplings `j`, a matrix `[n, n]` row by row. The matrix doesn't have to be
    /// symmetric.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are `n * n` couplings; [`Error::Config`] if `n` is 0, or if a coupling
    /// or `alpha` isn't finite.
    pub fn new(n: usize, j: &[f64], alpha: f64) -> Result<Self> {
        if n == 0 {
            return Err(Error::config("n", "0", "at least 1 spin"));
        }
        if n.checked_mul(n) != Some(j.len()) {
            return Err(Error::shape(
                "the coupling matrix",
                [n as i64, n as i64],
                [j.len() as i64],
                "give `n * n` couplings, row by row",
            ));
        }
        if let Some(place) = j.iter().position(|coupling| !coupling.is_finite()) {
            let row = place / n;
            let value = j[place];
            return Err(Error::non_finite("coupling", row, value, "give finite couplings"));
        }
        if !alpha.is_finite() {
            return Err(Error::config("alpha", alpha, "a finite number"));
        }
        let coupling = |a: usize, b: usize| if a == b { j[a * n + a] } else { j[a * n + b] + j[b * n + a] };
        let of_spin =
            |a| (a..n).map(|b| (b, coupling(a, b))).filter(|(_, coupling)| *coupling != 0.0).collect();
        let couplings = (0..n).map(of_spin).collect();
        Ok(Self { n, alpha, couplings, lattice: None, tables: DeviceTables::default() })
    }

    /// Builds the reward with all couplings 1, the default of torchgfn's `DiscreteEBM`:
    /// `log R = alpha * (sum of spins)^2`.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn with_equal_couplings(n: usize, alpha: f64) -> Result<Self> {
        Self::new(n, &vec![1.0; n.saturating_mul(n)], alpha)
    }

    /// Builds the reward of a periodic square lattice of `side * side` spins, numbered `side * row + column`.
    /// `J_ij` is `coupling` between neighbours, in both orders, so that a bond counts `2 * coupling`.
    ///
    /// On a lattice of side 2, two neighbours share two bonds; such a pair counts as one bond, as in
    /// torchgfn.
    ///
    /// # Errors
    /// [`Error::Config`] for a side outside `2..=1000`, and the errors of [`new`](Self::new).
    pub fn lattice(side: usize, coupling: f64, alpha: f64) -> Result<Self> {
        if !(2..=1000).contains(&side) {
            return Err(Error::config("side", side, "2 to 1,000 spins along a side"));
        }
        if !(coupling.is_finite() && alpha.is_finite()) {
            return Err(Error::config(
                "coupling and alpha",
                format!("{coupling}, {alpha}"),
                "finite numbers",
            ));
        }
        let mut couplings = vec![Vec::new(); side * side];
        if coupling != 0.0 {
            for (a, b) in lattice::bonds(side) {
                couplings[a].push((b, 2.0 * coupling));
            }
        }
        let lattice = Some((side, coupling));
        Ok(Self { n: side * side, alpha, couplings, lattice, tables: DeviceTables::default() })
    }

    /// Returns the number of spins of the model.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// Returns the energy `-s^T J s` of each state; unset spins count as 0.
    ///
    /// # Errors
    /// [`Error::Shape`] for states of another width.
    pub fn energy(&self, states: &VectorStates) -> Result<Vec<f64>> {
        rewards::score_rows(states, self.n, |row| Some(self.energy_of(row)))
    }

    fn energy_of(&self, row: &[u16]) -> f64 {
        let spin = |i: usize| [0.0, -1.0, 1.0].get(usize::from(row[i])).copied().unwrap_or(0.0);
        let field = |couplings: &[(usize, f64)]| {
            couplings.iter().map(|&(b, coupling)| coupling * spin(b)).sum::<f64>()
        };
        -self.couplings.iter().enumerate().map(|(a, couplings)| spin(a) * field(couplings)).sum::<f64>()
    }

    /// Returns the couplings times `alpha`, a sparse matrix `[n, n]`.
    fn coupling_matrix(&self) -> Tensor {
        let mut values = Vec::new();
        let mut indices = [Vec::new(), Vec::new()];
        for (a, couplings) in self.couplings.iter().enumerate() {
            for &(b, coupling) in couplings {
                values.push(self.alpha * coupling);
                indices[0].push(a as i64);
                indices[1].push(b as i64);
            }
        }
        let indices = indices.map(|index| Tensor::from_slice(&index));
        Tensor::sparse_coo_tensor_indices_size(
            &Tensor::stack(&indices, 0),
            &Tensor::from_slice(&values),
            [self.n as i64; 2],
            (Kind::Double, Device::Cpu),
            true,
        )
    }

    /// Returns log Z. For a lattice of side 3 to 9 it is computed with the transfer matrix. For other models
    /// all states of up to 24 spins are enumerated. Returns `None` for more spins. A lattice of side 9, or
    /// more than 20 enumerated spins, take about a second; smaller models take far less time.
    #[must_use]
    pub fn log_z(&self) -> Option<f64> {
        match self.lattice {
            Some((side, coupling)) if (3..=9).contains(&side) => {
                Some(lattice::log_z(side, 2.0 * coupling * self.alpha))
            }
            _ if self.n <= Self::MAX_ENUMERATED => Some(self.enumerated_log_z()),
            _ => None,
        }
    }

    /// Returns log Z by enumerating all states. The order of the states is that of a Gray code, in which a
    /// single spin flips from one state to the next.
    fn enumerated_log_z(&self) -> f64 {
        let mut full = vec![Vec::new(); self.n];
        for (a, couplings) in self.couplings.iter().enumerate() {
            for &(b, coupling) in couplings.iter().filter(|(b, _)| *b != a) {
                full[a].push((b, coupling));
                full[b].push((a, coupling));
            }
        }
        let mut row = vec![1u16; self.n];
        let mut spins = vec![-1.0f64; self.n];
        let mut value = -self.alpha * self.energy_of(&row);
        // `sum` is the sum of exponentials so far, divided by exp(`largest`), the largest of these
        // exponentials.
        let mut largest = value;
        let mut sum = 1.0;
        for step in 1..1usize << self.n {
            let flipped = step.trailing_zeros() as usize;
            spins[flipped] = -spins[flipped];
            row[flipped] = 3 - row[flipped];
            // The energy is recomputed from scratch every 1,024 steps. Otherwise rounding errors would add up
            // over millions of differences.
            if step.is_multiple_of(1024) {
                value = -self.alpha * self.energy_of(&row);
            } else {
                let field: f64 = full[flipped].iter().map(|&(b, coupling)| coupling * spins[b]).sum();
                value += self.alpha * 2.0 * spins[flipped] * field;
            }
            if value > largest {
                sum *= (largest - value).exp();
                largest = value;
            }
            sum += (value - largest).exp();
        }
        largest + f64::ln(sum)
    }
}

impl Reward<VectorStates> for IsingReward {
    fn log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Vec<f64>> {
        rewards::score_rows(states, self.n, |row| {
            (!row.contains(&0)).then(|| -self.alpha * self.energy_of(row))
        })
    }
    fn partial_log_reward(&self, states: &VectorStates, _: Option<&Tensor>) -> Result<Option<Vec<f64>>> {
        rewards::score_rows(states, self.n, |row| Some(-self.alpha * self.energy_of(row))).map(Some)
    }
    fn on_tensors(&self) -> Option<&dyn TensorReward> {
        Some(self)
    }
}

impl TensorReward for IsingReward {
    fn log_rewards(&self, states: &Tensor) -> Result<Tensor> {
        let [couplings] = self.tables.get(states.device(), || [self.coupling_matrix()]);
        let spins = (states * 2 - 3).to_kind(Kind::Double).transpose(0, 1).contiguous();
        Ok((couplings.matmul(&spins) * spins).sum_dim_intlist(0, false, Kind::Double))
    }
}
