//! Two threads for one trainer: one learns, the other draws its next batch meanwhile, and scores a part of its states.

use std::any::Any;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use gfn::env::Env;
use gfn::train::Trainer;
use gfn::{Error, Result};

use super::{MEMBER, Member};

type Given = Box<dyn Any + Send>;

/// What a thread does of the two, once it has made its trainer.
pub(super) enum Ahead {
    Learns(From),
    Draws(To),
}

/// Where the other trainer comes from.
pub(super) struct From(Receiver<Given>);

/// Where it goes.
pub(super) struct To(Sender<Given>);

impl From {
    pub(super) fn take<E: Env + 'static, P: 'static>(self) -> Result<Trainer<E, P>> {
        let made = self.0.recv().map_err(|_| gone())?;
        made.downcast().map(|trainer| *trainer).map_err(|_| {
            Error::contract("threads that share a run make the same trainer", "one made another kind than the other")
        })
    }
}

impl To {
    pub(super) fn give<E: Env + 'static, P: Send + 'static>(self, trainer: Trainer<E, P>) -> Result<()> {
        self.0.send(Box::new(trainer)).map_err(|_| gone())
    }
}

fn gone() -> Error {
    Error::peer("the other thread of the run", "it has ended", "look for the error that it ended with")
}

/// What this thread has to do with drawing ahead, once.
pub(super) fn take() -> Option<Ahead> {
    MEMBER.with_borrow_mut(|member| member.ahead.take())
}

/// Does a task with `learn`, and once more in a thread that gives away its trainer.
pub(super) fn in_pairs(learn: impl FnOnce(Ahead) -> Result<()>, work: &(impl Fn() -> Result<()> + Sync)) -> Result<()> {
    let (to, from) = channel();
    thread::scope(|scope| {
        let drawing = scope.spawn(move || {
            // Neither does it measure, nor write.
            MEMBER.set(Member { ahead: Some(Ahead::Draws(To(to))), ..Member::alone(1) });
            work()
        });
        let learnt = learn(Ahead::Learns(From(from)));
        let drawn = drawing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // That the other has ended is a consequence of its error, not the cause.
        match (learnt, drawn) {
            (Err(Error::Peer { .. }), Err(cause)) if !matches!(cause, Error::Peer { .. }) => Err(cause),
            (Ok(()), drawn) => drawn,
            (learnt, _) => learnt,
        }
    })
}
