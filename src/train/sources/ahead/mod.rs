//! A second thread for a trainer: it draws the next batch while the trainer learns from this one, and scores a part of this one's states.

mod source;
mod thread;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use rand::RngCore;
use tch::{Tensor, no_grad, with_grad};

use crate::env::Env;
use crate::nn::Parameters;
use crate::objective::{Answers, Questions, Sharer};
use crate::policy::Policy;
use crate::rollout::ReplayEnv;
use crate::runtime::backward;
use crate::train::Context;
use crate::{Error, Result, Rng, parallel};
pub(in crate::train) use source::AHEAD;
use source::Order;
use thread::{Answered, Drawn, Propagated, Results, Task, Weights, back, work};

/// The part of a batch's distinct states that the thread scores. It draws beside that, so both threads have as much to do, about (decision
/// "A second thread draws ahead and scores").
const SHARE: f64 = 0.35;
/// Fewer states aren't worth a message.
const LEAST: usize = 64;

/// Draws fresh trajectories one step ahead: those of a step were drawn by the parameters before the last update. And scores some of the states.
///
/// How fast either thread is has no say in either, so a run gives the same bits again. A checkpoint keeps the order for the batch that
/// is on its way, parameters and all, and a run that resumes draws that batch once more. Replicas give their threads the same orders but for
/// the random stream, so the checkpoint of one of them does for all.
pub(in crate::train) struct Ahead<E: Env> {
    /// `None` only while it is dropped.
    tasks: Option<Sender<Task<E>>>,
    // All are read with `&mut self` alone; the locks let threads share what holds them.
    drawn: Mutex<Receiver<Drawn<E>>>,
    answered: Mutex<Receiver<Answered>>,
    propagated: Mutex<Receiver<Propagated>>,
    thread: Option<JoinHandle<()>>,
    seed: u64,
    /// The number of the next order.
    next: u64,
    order: Option<Order>,
    /// Of the next order that is sent.
    tickets: u64,
    /// The trainer's parameters in this step.
    weights: Weights,
    /// Whether it may score: it doesn't where the weights have noise, which is drawn by each thread for itself.
    scores: bool,
    /// The number of the last questions.
    asked: u64,
    /// Whether the thread waits for the gradients of its answers to them.
    awaited: bool,
    /// This thread's answers and the other's, each with its gradients.
    answers: Option<[(Answers, Answers); 2]>,
}

impl<E: ReplayEnv + 'static> Ahead<E> {
    /// Starts a thread that works in this context.
    pub(in crate::train) fn start<P: Policy<E> + Send + 'static>(context: Context<E, P>, mut rng: Rng) -> Result<Self> {
        let (tasks, taken) = channel();
        let ((drawn, of_drawn), (answered, of_answered)) = (channel(), channel());
        let (propagated, of_propagated) = channel();
        let results = Results { drawn, answered, propagated };
        let scores = !context.policy.parameters().is_some_and(Parameters::is_noisy);
        // The number belongs to a thread, and a new one would take all cores.
        let libtorch_threads = tch::get_num_threads();
        let run = move || {
            tch::set_num_threads(libtorch_threads);
            parallel::alone(|| work(&context, &taken, &results));
        };
        let thread = Builder::new().name("gfn-ahead".into()).spawn(run);
        let thread = thread.map_err(|error| Error::config("a thread that draws ahead", error, "a thread for it"))?;
        Ok(Self {
            tasks: Some(tasks),
            drawn: Mutex::new(of_drawn),
            answered: Mutex::new(of_answered),
            propagated: Mutex::new(of_propagated),
            thread: Some(thread),
            seed: rng.next_u64(),
            next: 0,
            order: None,
            tickets: 0,
            weights: Weights::default(),
            scores,
            asked: 0,
            awaited: false,
            answers: None,
        })
    }
}

impl<E: Env> Ahead<E> {
    fn send(&mut self, task: Task<E>) -> Result<()> {
        match self.tasks.as_ref().is_some_and(|tasks| tasks.send(task).is_ok()) {
            true => Ok(()),
            false => Err(self.ended()),
        }
    }

    /// The thread's panic goes on here, as it would have if this thread had worked.
    fn ended(&mut self) -> Error {
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
        Error::peer("the thread that draws ahead", "it has ended", "make the trainer anew, or resume from a checkpoint")
    }

    /// Takes a copy of the parameters, unless it has one.
    fn copy_weights(&mut self, parameters: Option<&Parameters>) {
        let version = parameters.map(Parameters::version);
        if self.weights.number == 0 || self.weights.version != version {
            let list = parameters.into_iter().flatten();
            let tensors = no_grad(|| list.map(|one| one.tensor.copy()).collect());
            self.weights = Weights { number: self.weights.number + 1, version, tensors };
        }
    }

    /// Takes its copy for one of the parameters as they are now.
    pub(in crate::train) fn keep_weights(&mut self, parameters: &Parameters) {
        self.weights.version = Some(parameters.version());
    }

    /// Lets the thread go on whose answers nobody needs: a step has ended in an error.
    fn release(&mut self) -> Result<()> {
        self.answers = None;
        match std::mem::take(&mut self.awaited) {
            true => self.send(Task::Propagate(self.asked, Vec::new())),
            false => Ok(()),
        }
    }

    /// Goes back from the answers, whose gradients are there, to the parameters: this thread from its own, the other from the others.
    pub(in crate::train) fn propagate(&mut self, parameters: Option<&Parameters>) -> Result<()> {
        let Some([(own, own_leaves), (_, leaves)]) = self.answers.take() else { return Ok(()) };
        let gradient = |leaf: &Tensor| Some(leaf.grad()).filter(Tensor::defined);
        self.awaited = false;
        self.send(Task::Propagate(self.asked, leaves.all().map(gradient).collect()))?;
        let own = back(own.all().zip(own_leaves.all().map(gradient)));
        let gradients = match receive(&mut self.propagated, self.asked) {
            Some(gradients) => own.and(gradients)?,
            None => return Err(self.ended()),
        };
        for (parameter, gradient) in parameters.into_iter().flatten().zip(gradients) {
            let Some(theirs) = gradient else { continue };
            let tensor = &parameter.tensor;
            if !tensor.grad().defined() {
                // A gradient comes into being by a backward pass alone.
                with_grad(|| backward(&(tensor * 0.0).sum(tensor.kind())))?;
            }
            no_grad(|| tensor.grad().f_add_(&theirs).map(drop))?;
        }
        Ok(())
    }
}

/// What came with this number; what came before is of a step that failed.
fn receive<T>(from: &mut Mutex<Receiver<(u64, T)>>, number: u64) -> Option<T> {
    let from = from.get_mut().unwrap_or_else(PoisonError::into_inner);
    from.iter().find(|(other, _)| *other == number).map(|(_, found)| found)
}

/// The sharing of one batch, and what to order once the thread has its questions: what it draws nobody waits for yet.
pub(in crate::train) struct Sharing<'a, E: Env, P> {
    pub(in crate::train) ahead: &'a mut Ahead<E>,
    pub(in crate::train) context: &'a Context<E, P>,
}

impl<E: Env, P: Policy<E>> Sharer<E> for Sharing<'_, E, P> {
    fn takes(&mut self, n: usize) -> Result<usize> {
        let share = (n as f64 * SHARE) as usize;
        if self.ahead.scores && share >= LEAST {
            return Ok(share);
        }
        self.ahead.send_order(self.context).map(|()| 0)
    }

    fn ask(&mut self, states: E::States, questions: Questions<E::Actions>) -> Result<()> {
        let ahead = &mut *self.ahead;
        ahead.asked += 1;
        ahead.release()?;
        // A second epoch scores by the parameters that the first one has left.
        ahead.copy_weights(self.context.policy.parameters());
        ahead.awaited = true;
        let task = Task::Answer { number: ahead.asked, weights: ahead.weights.shallow(), states, questions };
        ahead.send(task)?;
        ahead.send_order(self.context)
    }

    fn receive(&mut self, own: Answers) -> Result<(Answers, Answers)> {
        let Some(answered) = receive(&mut self.ahead.answered, self.ahead.asked) else {
            return Err(self.ahead.ended());
        };
        let leaves = answered?;
        let own_leaves = own.map(|answer| answer.detach().set_requires_grad(answer.requires_grad()));
        let out = (own_leaves.map(Tensor::shallow_clone), leaves.map(Tensor::shallow_clone));
        let kept = leaves.map(Tensor::shallow_clone);
        self.ahead.answers = Some([(own, own_leaves), (kept, leaves)]);
        Ok(out)
    }
}

impl<E: Env> Drop for Ahead<E> {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            // A panic of it is of a batch that nobody will ask for.
            let _ = thread.join();
        }
    }
}
