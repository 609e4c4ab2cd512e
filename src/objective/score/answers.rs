//! What is asked of a policy about the distinct states of a batch, and its answers.

use tch::Tensor;

use super::{SCORING, log_exits, no_pf};
use crate::Result;
use crate::distribution::Distribution;
use crate::env::{Env, Rows};
use crate::policy::{Evaluation, Policy};
use crate::quantity::{Quantities, Quantity, Values, flat};
use crate::tensor::index_tensor;

/// Questions about states, each asked about by its row.
pub(crate) struct Questions<A> {
    pub(crate) conditions: Option<Tensor>,
    pub(crate) wants: Quantities,
    /// log P_F of these actions: those that were taken, and, where it is asked for, the exit of each state.
    pub(crate) forward: Vec<(Vec<usize>, A)>,
    /// log P_B of these.
    pub(crate) backward: (Vec<usize>, A),
    /// One number of each state, for each of these.
    pub(crate) of_states: Vec<Quantity>,
}

/// Flat tensors in the order of the questions, with gradients.
pub(crate) struct Answers {
    pub(crate) log_pf: Vec<Tensor>,
    pub(crate) log_pb: Tensor,
    pub(crate) of_states: Vec<Tensor>,
}

/// What a policy says of all states.
pub(super) struct Whole<D> {
    pub(super) pf: D,
    pub(super) pb: D,
    pub(super) prior: Option<D>,
    pub(super) values: Values,
}

impl Answers {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Tensor> {
        self.log_pf.iter().chain([&self.log_pb]).chain(&self.of_states)
    }

    /// The same of other tensors.
    pub(crate) fn map(&self, mut f: impl FnMut(&Tensor) -> Tensor) -> Self {
        let log_pf = self.log_pf.iter().map(&mut f).collect();
        Self { log_pf, log_pb: f(&self.log_pb), of_states: self.of_states.iter().map(f).collect() }
    }
}

impl<A: Rows> Questions<A> {
    pub(crate) fn answer<E: Env<Actions = A>, P: Policy<E>>(
        &self,
        env: &E,
        policy: &P,
        states: &E::States,
    ) -> Result<Answers> {
        self.answer_all(env, policy, states).map(|(answers, _)| answers)
    }

    /// The answers, and what else the policy says of the states.
    pub(super) fn answer_all<E: Env<Actions = A>, P: Policy<E>>(
        &self,
        env: &E,
        policy: &P,
        states: &E::States,
    ) -> Result<(Answers, Whole<P::Dist>)> {
        let Evaluation { pf, pb, prior, mut values } =
            policy.evaluate(env, states, self.conditions.as_ref(), self.wants)?;
        let pf = pf.ok_or_else(no_pf)?;
        let of_list = |(k, (rows, actions)): (usize, &(Vec<usize>, A))| match k {
            0 => flat(Quantity::LogPf, pf.log_prob(rows, actions)?, rows.len()),
            _ => log_exits(&pf, rows, actions),
        };
        let log_pf = self.forward.iter().enumerate().map(of_list).collect::<Result<_>>()?;
        let pb = pb.ok_or_else(|| Quantity::LogPb.missing(SCORING))?;
        let (pb_rows, undo) = &self.backward;
        let log_pb = flat(Quantity::LogPb, pb.log_prob(pb_rows, undo)?, pb_rows.len())?;
        let mut of_states = Vec::with_capacity(self.of_states.len());
        for &quantity in &self.of_states {
            if quantity == Quantity::Entropy {
                let entropies = pf.entropies().ok_or_else(|| Quantity::Entropy.missing(SCORING))?;
                values.insert(quantity, entropies);
            }
            of_states.push(values.take_flat(quantity, states.len(), SCORING)?);
        }
        Ok((Answers { log_pf, log_pb, of_states }, Whole { pf, pb, prior, values }))
    }

    /// What is asked about some of the states, and the places of these questions in each list of all, P_B's last.
    fn about(&self, states: &[usize], n: usize) -> (Self, Vec<Vec<usize>>) {
        let mut row = vec![None; n];
        states.iter().enumerate().for_each(|(k, &state)| row[state] = Some(k));
        let mut all_places = Vec::new();
        let mut part = |(rows, actions): &(Vec<usize>, A)| {
            let places: Vec<usize> = (0..rows.len()).filter(|&k| row[rows[k]].is_some()).collect();
            let own = places.iter().filter_map(|&k| row[rows[k]]).collect();
            let part = (own, actions.select(&places));
            all_places.push(places);
            part
        };
        let forward = self.forward.iter().map(&mut part).collect();
        let backward = part(&self.backward);
        let of_these = |c: &Tensor| c.index_select(0, &index_tensor(states, c.device()));
        let conditions = self.conditions.as_ref().map(of_these);
        let asked = Self { conditions, wants: self.wants, forward, backward, of_states: self.of_states.clone() };
        (asked, all_places)
    }

    /// Answers for some of the states here, while another thread does for those of least depth. These have most in common, and so have those
    /// that are left: what a network works out once for states that are alike is worked out twice where they are parted.
    pub(crate) fn answer_in_shares<E: Env<Actions = A>, P: Policy<E>>(
        &self,
        env: &E,
        policy: &P,
        (states, depths): (&E::States, &[usize]),
        sharer: &mut dyn Sharer<E>,
    ) -> Result<Answers> {
        let n = states.len();
        let taken = sharer.takes(n)?.min(n);
        if taken == 0 {
            return self.answer(env, policy, states);
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&state| depths[state]);
        let (for_other, for_this) = order.split_at(taken);
        let ((other, others), (own, mine)) = (self.about(for_other, n), self.about(for_this, n));
        sharer.ask(states.select(for_other), other)?;
        let (own, other) = sharer.receive(own.answer(env, policy, &states.select(for_this))?)?;
        let in_order = |a: &Tensor, b: &Tensor, (mine, others): (&[usize], &[usize])| {
            let all: Tensor = Tensor::cat(&[a, &b.to_device(a.device())], 0);
            all.index_select(0, &index_tensor(&order_of(mine, others), all.device()))
        };
        let lists = |k: usize| (mine[k].as_slice(), others[k].as_slice());
        let of_states = own.of_states.iter().zip(&other.of_states);
        Ok(Answers {
            log_pf: own
                .log_pf
                .iter()
                .zip(&other.log_pf)
                .enumerate()
                .map(|(k, (a, b))| in_order(a, b, lists(k)))
                .collect(),
            log_pb: in_order(&own.log_pb, &other.log_pb, lists(self.forward.len())),
            of_states: of_states.map(|(a, b)| in_order(a, b, (for_this, for_other))).collect(),
        })
    }
}

/// For each place, where it is among those of one part followed by those of the other.
fn order_of(first: &[usize], second: &[usize]) -> Vec<usize> {
    let mut order = vec![0; first.len() + second.len()];
    first.iter().chain(second).enumerate().for_each(|(k, &place)| order[place] = k);
    order
}

/// Another thread that answers for a part of the states, with a policy of the same parameters.
///
/// The loss is differentiated down to the answers only, so that both threads can go on from there, each to its own parameters.
pub(crate) trait Sharer<E: Env> {
    /// How many of `n` states it takes.
    fn takes(&mut self, n: usize) -> Result<usize>;

    /// Asks it; it works from here on.
    fn ask(&mut self, states: E::States, questions: Questions<E::Actions>) -> Result<()>;

    /// Waits for its answers; gives `own` and those as leaves, which collect the gradient of the loss.
    fn receive(&mut self, own: Answers) -> Result<(Answers, Answers)>;
}
