//! The next batch: how it is ordered, taken, and kept in checkpoints.

use tch::Tensor;

use super::thread::{Draw, Task, Weights};
use super::{Ahead, receive};
use crate::env::Env;
use crate::io::{Named, malformed};
use crate::nn::Parameters;
use crate::objective::can_share;
use crate::policy::Policy;
use crate::rollout::{Container, ReplayEnv, Trajectories};
use crate::train::{Context, FreshSource, Persist, Wanted};
use crate::{Error, Result, Rng};

/// The section of checkpoints.
pub(in crate::train) const AHEAD: &str = "ahead";
const NUMBER: &str = "number";
const SEED: &str = "seed";
const ORDER: &str = "order";

/// A batch that is on its way.
pub(super) struct Order {
    /// How many were ordered before it.
    number: u64,
    /// The step that will learn from it: how to explore depends on it.
    step: u64,
    /// Whether it is a replica's whole share of the batch; else as many as the next step wants.
    whole: bool,
    /// The policy's, when it was ordered.
    weights: Weights,
    /// How many it is for, where it is this trainer's own; of a checkpoint's that is found out in the first step.
    n: Option<usize>,
    /// How many a checkpoint says.
    kept: usize,
    /// By which the thread's batch is known, once it has the order.
    ticket: Option<u64>,
}

impl<E: Env> Ahead<E> {
    /// Orders the batch that a step will learn from; [`send_order`](Self::send_order) sends it.
    fn order<P>(&mut self, context: &Context<E, P>, step: u64, n: usize) {
        let (number, whole, weights) = (self.next, n == context.share(), self.weights.shallow());
        self.next += 1;
        self.order = Some(Order { number, step, whole, weights, n: Some(n), kept: n, ticket: None });
    }

    pub(super) fn send_order<P>(&mut self, context: &Context<E, P>) -> Result<()> {
        let Some((order, n)) = self.order.as_mut().filter(|order| order.ticket.is_none()).and_then(|order| {
            let n = order.n?;
            Some((order, n))
        }) else {
            return Ok(());
        };
        let rank = context.replicas().map_or(0, |replicas| replicas.rank() as u64);
        let draw = Draw {
            ticket: self.tickets,
            n,
            exploration: context.config.exploration(order.step as usize)?,
            stream: Rng::mix64(self.seed ^ Rng::mix64(order.number ^ Rng::mix64(rank))),
            weights: order.weights.shallow(),
        };
        order.ticket = Some(self.tickets);
        self.tickets += 1;
        self.send(Task::Draw(draw))
    }
}

impl<E: ReplayEnv> Persist<E> for Ahead<E> {
    fn name(&self) -> &str {
        AHEAD
    }
    fn describe(&self) -> String {
        "a thread that draws ahead".into()
    }
    fn state(&self, _env: &E) -> Result<Vec<(String, Tensor)>> {
        let one = |name: &str, number: u64| (name.to_owned(), Tensor::from_slice(&[number.cast_signed()]));
        let mut out = vec![one(NUMBER, self.next), one(SEED, self.seed)];
        if let Some(order) = &self.order {
            let n = order.kept as u64;
            let numbers = [order.number, order.step, u64::from(order.whole), n].map(u64::cast_signed);
            out.push((ORDER.to_owned(), Tensor::from_slice(&numbers)));
            let parameters = order.weights.tensors.iter().enumerate();
            out.extend(parameters.map(|(k, tensor)| (format!("parameter/{k}"), tensor.shallow_clone())));
        }
        Ok(out)
    }
    fn load_state(&mut self, _env: &E, state: &[(String, Tensor)]) -> Result<()> {
        let named = Named(state);
        let number = |name: &str| -> Result<u64> { Ok(named.column(named.ints(name)?, name, 1)?[0].cast_unsigned()) };
        let (next, seed) = (number(NUMBER)?, number(SEED)?);
        let order = match named.get(ORDER) {
            None => None,
            Some(_) => {
                let numbers = named.column(named.ints(ORDER)?, ORDER, 4)?;
                let tensors = (0..).map_while(|k| named.get(&format!("parameter/{k}"))).map(Tensor::shallow_clone);
                let [number, step] = [numbers[0], numbers[1]].map(i64::cast_unsigned);
                // Neither the thread nor a later copy may take it for what they have.
                self.weights = Weights { number: self.weights.number + 1, version: None, tensors: tensors.collect() };
                let weights = self.weights.shallow();
                Some(Order {
                    number,
                    step,
                    whole: numbers[2] != 0,
                    weights,
                    n: None,
                    kept: numbers[3] as usize,
                    ticket: None,
                })
            }
        };
        if order.as_ref().is_some_and(|order| order.number >= next) {
            return Err(malformed(ORDER));
        }
        // What the thread draws meanwhile has a ticket that nobody will ask for.
        (self.next, self.seed, self.order) = (next, seed, order);
        Ok(())
    }
}

impl<E: ReplayEnv, P: Policy<E>> FreshSource<E, P> for Ahead<E> {
    fn draw(&mut self, wanted: Wanted, context: &Context<E, P>) -> Result<Option<Trajectories<E>>> {
        self.copy_weights(context.policy.parameters());
        self.release()?;
        if wanted.most == 0 {
            return Ok(None);
        }
        let step = context.step as u64;
        loop {
            match &mut self.order {
                // Of a checkpoint: its parameters may be those of another model.
                Some(order) if order.n.is_none() => {
                    check_parameters(context.policy.parameters(), &order.weights.tensors)?;
                    order.n = Some(match context.replicas() {
                        None if order.kept <= context.share() => order.kept,
                        // What the first replica has kept isn't each one's.
                        _ if order.whole => context.share(),
                        _ => wanted.most,
                    });
                }
                // The step before may have ended without sending it.
                Some(_) => {}
                None => self.order(context, step, wanted.most),
            }
            self.send_order(context)?;
            let Some(ticket) = self.order.take().and_then(|order| order.ticket) else { return Err(self.ended()) };
            self.order(context, step + 1, wanted.most);
            if !self.scores || context.config.chunk.is_some() || !can_share(context.objective.needs()) {
                // Nobody will ask it to score first.
                self.send_order(context)?;
            }
            let Some(drawn) = receive(&mut self.drawn, ticket) else { return Err(self.ended()) };
            let drawn = drawn?;
            // A buffer that has lost its objects wants more than it did when this was ordered.
            if drawn.len() >= wanted.least {
                let surplus = drawn.len().saturating_sub(wanted.most);
                let cut = surplus > 0 && !wanted.more;
                return if cut { drawn.select(surplus..drawn.len()) } else { Ok(drawn) }.map(Some);
            }
        }
    }
}

fn check_parameters(own: Option<&Parameters>, kept: &[Tensor]) -> Result<()> {
    let sizes = |tensor: &Tensor| (tensor.size(), tensor.kind());
    let own: Vec<_> = own.into_iter().flatten().map(|one| sizes(&one.tensor)).collect();
    match own == kept.iter().map(sizes).collect::<Vec<_>>() {
        true => Ok(()),
        false => Err(Error::contract(
            "a batch that was ordered before a checkpoint is drawn by the model that the checkpoint is of",
            "the parameters that it was ordered with are those of another model",
        )),
    }
}
