//! The thread's side: it draws what is ordered, and scores a part of a batch's states.

use std::sync::mpsc::{Receiver, Sender};

use tch::{Tensor, no_grad};

use crate::distribution::Exploration;
use crate::env::Env;
use crate::objective::{Answers, Questions};
use crate::policy::Policy;
use crate::rollout::{ReplayEnv, Trajectories};
use crate::runtime::backward;
use crate::train::Context;
use crate::train::sources::OnPolicy;
use crate::{Result, Rng};

/// The trainer's parameters at one step.
#[derive(Default)]
pub(super) struct Weights {
    /// Others have another number.
    pub(super) number: u64,
    /// Of the trainer's parameters, when they were copied.
    pub(super) version: Option<u64>,
    pub(super) tensors: Vec<Tensor>,
}

impl Weights {
    pub(super) fn shallow(&self) -> Self {
        Self {
            number: self.number,
            version: self.version,
            tensors: self.tensors.iter().map(Tensor::shallow_clone).collect(),
        }
    }
}

/// A batch to draw.
pub(super) struct Draw {
    /// Given back with the batch.
    pub(super) ticket: u64,
    pub(super) n: usize,
    pub(super) exploration: Exploration,
    pub(super) stream: u64,
    pub(super) weights: Weights,
}

pub(super) enum Task<E: Env> {
    Draw(Draw),
    /// To be answered with gradients recorded; the number is given back.
    Answer {
        number: u64,
        weights: Weights,
        states: E::States,
        questions: Questions<E::Actions>,
    },
    /// The loss's gradient with respect to each of the last answers, in their order.
    Propagate(u64, Vec<Option<Tensor>>),
}

pub(super) type Drawn<E> = (u64, Result<Trajectories<E>>);
pub(super) type Answered = (u64, Result<Answers>);
/// The gradient of each parameter that has one.
pub(super) type Propagated = (u64, Result<Vec<Option<Tensor>>>);

/// Where results go.
pub(super) struct Results<E: Env> {
    pub(super) drawn: Sender<Drawn<E>>,
    pub(super) answered: Sender<Answered>,
    pub(super) propagated: Sender<Propagated>,
}

/// Works until the trainer has gone.
pub(super) fn work<E: ReplayEnv, P: Policy<E>>(context: &Context<E, P>, tasks: &Receiver<Task<E>>, to: &Results<E>) {
    let mut worker = Worker { context, to, has: None, recorded: None };
    let mut waiting = None;
    while let Some(task) = waiting.take().or_else(|| tasks.recv().ok()) {
        let sent = match task {
            Task::Draw(draw) => {
                let (ticket, mut drawn) = (draw.ticket, worker.draw(draw));
                // The reward may take long, and the trainer waits for the gradients of what it was answered.
                if worker.recorded.is_some() {
                    match tasks.recv() {
                        Ok(Task::Propagate(number, gradients)) => drop(worker.propagate(number, gradients)),
                        // The trainer's step has ended before.
                        Ok(other) => waiting = Some(other),
                        Err(_) => return,
                    }
                }
                drawn = drawn.and_then(|drawn| context.rewarded(drawn));
                to.drawn.send((ticket, drawn)).is_ok()
            }
            Task::Answer { number, weights, states, questions } => worker.answer(number, &weights, &states, &questions),
            Task::Propagate(number, gradients) => worker.propagate(number, gradients),
        };
        // Nobody is there to hear of it if the trainer has gone.
        if !sent {
            return;
        }
    }
}

struct Worker<'a, E: Env, P> {
    context: &'a Context<E, P>,
    to: &'a Results<E>,
    /// The number of the parameters that the policy has.
    has: Option<u64>,
    /// The last answers, until their gradients come.
    recorded: Option<Answers>,
}

impl<E: ReplayEnv, P: Policy<E>> Worker<'_, E, P> {
    fn take_over(&mut self, weights: &Weights) {
        if self.has != Some(weights.number) {
            let own = self.context.policy.parameters().into_iter().flatten();
            no_grad(|| own.zip(&weights.tensors).for_each(|(own, new)| own.tensor.shallow_clone().copy_(new)));
            self.has = Some(weights.number);
        }
    }

    fn draw(&mut self, Draw { n, exploration, stream, weights, .. }: Draw) -> Result<Trajectories<E>> {
        self.take_over(&weights);
        let mut rng = Rng::seeded(stream);
        if let Some(own) = self.context.policy.parameters() {
            own.reset_noise(&mut rng);
        }
        OnPolicy::default().draw(n, exploration, (self.context, None), &mut rng)
    }

    fn answer(
        &mut self,
        number: u64,
        weights: &Weights,
        states: &E::States,
        questions: &Questions<E::Actions>,
    ) -> bool {
        self.take_over(weights);
        let answers = questions.answer(&self.context.env, &self.context.policy, states);
        let answers = answers.map(|answers| {
            let copies = answers.map(|own| own.detach().set_requires_grad(own.requires_grad()));
            self.recorded = Some(answers);
            copies
        });
        self.to.answered.send((number, answers)).is_ok()
    }

    fn propagate(&mut self, number: u64, gradients: Vec<Option<Tensor>>) -> bool {
        let answers = self.recorded.take();
        let gradients = answers.map_or_else(|| Ok(Vec::new()), |answers| propagate(self.context, &answers, gradients));
        self.to.propagated.send((number, gradients)).is_ok()
    }
}

fn propagate<E: ReplayEnv, P: Policy<E>>(
    context: &Context<E, P>,
    answers: &Answers,
    gradients: Vec<Option<Tensor>>,
) -> Result<Vec<Option<Tensor>>> {
    let done = back(answers.all().zip(gradients));
    let parameters = context.policy.parameters();
    let gradient = |tensor: &Tensor| Some(tensor.grad()).filter(Tensor::defined).map(|gradient| gradient.copy());
    let out = parameters.into_iter().flatten().map(|one| gradient(&one.tensor)).collect();
    if let Some(parameters) = parameters {
        parameters.clear_gradients();
    }
    done.map(|()| out)
}

/// The way back from values into the parameters, given the gradient with respect to each of them.
pub(super) fn back<'a>(pairs: impl Iterator<Item = (&'a Tensor, Option<Tensor>)>) -> Result<()> {
    let terms = pairs.filter(|(value, _)| value.requires_grad());
    let terms = terms.filter_map(|(value, gradient)| Some((value * gradient?).sum(value.kind())));
    if let Some(sum) = terms.reduce(|sum, term| sum + term) {
        backward(&sum)?;
    }
    Ok(())
}
