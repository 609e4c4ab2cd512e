//! One actor, as a thread of the learner sees it.

use std::net::TcpStream;

use super::conditions::Form;
use super::frame::{Broken, Kind, read, write};
use super::message::{Hello, MAX_GREETING, Submission, Welcome};
use super::shared::{Item, Shared};
use super::weights::Weights;

/// Talks to an actor until either has enough.
pub(super) fn attend(shared: &Shared, mut stream: TcpStream, ticket: u64) {
    let prepared = stream.set_nonblocking(false).and_then(|()| {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(shared.config.timeout))?;
        stream.set_write_timeout(Some(shared.config.timeout))?;
        stream.try_clone()
    });
    let Ok(copy) = prepared else { return };
    if !shared.connected(ticket, copy) {
        let _ = if shared.is_closing() {
            write(&mut stream, Kind::Done, &[])
        } else {
            refuse(shared, &mut stream, "the learner has as many actors as it takes")
        };
        return;
    }
    let mut here = Here { shared, ticket, joined: false };
    let ended = greet(shared, &mut stream, ticket).and_then(|version| match version {
        Some((version, conditions)) => {
            here.join();
            serve(shared, &mut stream, ticket, version, conditions)
        }
        None => Ok(()),
    });
    // Nobody is there to tell, if this fails.
    let _ = match ended {
        // What is cut off at the end is no fault of the actor's.
        _ if shared.is_closing() => write(&mut stream, Kind::Done, &[]),
        Err(Broken::Garbage(reason)) => refuse(shared, &mut stream, &reason),
        Ok(()) | Err(_) => Ok(()),
    };
}

/// A connection among those of the learner, however its thread ends.
struct Here<'a> {
    shared: &'a Shared,
    ticket: u64,
    joined: bool,
}

impl Here<'_> {
    fn join(&mut self) {
        self.joined = true;
        self.shared.joined();
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        if self.joined {
            self.shared.left();
        }
        self.shared.disconnected(self.ticket);
    }
}

fn refuse(shared: &Shared, stream: &mut TcpStream, reason: &str) -> Result<(), Broken> {
    shared.refused(reason);
    tell(stream, reason)
}

fn tell(stream: &mut TcpStream, reason: &str) -> Result<(), Broken> {
    write(stream, Kind::Refused, &reason.as_bytes()[..reason.len().min(MAX_GREETING)])
}

/// Takes an actor that has this model, this environment and conditions of this form; says which parameters it was sent, and which form that is.
fn greet(shared: &Shared, stream: &mut TcpStream, ticket: u64) -> Result<Option<(u64, Form)>, Broken> {
    let (kind, body) = read(stream, MAX_GREETING)?;
    if kind != Kind::Hello {
        return Err(Broken::Garbage(format!("{kind:?} in place of a greeting")));
    }
    let hello = Hello::decode(&body)?;
    let Some(weights) = shared.weights(|| write(stream, Kind::Alive, &[]))? else { return Ok(None) };
    let Weights { model, environment, conditions, version, learner: (rank, size), .. } = &*weights;
    if hello.model != *model {
        return Err(Broken::garbage("another model: its parameters have other names, shapes or kinds"));
    }
    if hello.environment != *environment {
        let theirs = hello.environment;
        return Err(Broken::Garbage(format!("another environment ({theirs}, the learner's is {environment})")));
    }
    if hello.conditions != *conditions {
        let theirs = hello.conditions;
        return Err(Broken::Garbage(format!("other conditions ({theirs}, the learner's are {conditions})")));
    }
    let (timeout, max_message) = (shared.config.timeout, shared.config.max_message);
    // Actors of other learners have other numbers.
    let welcome = Welcome { ticket: ticket * size + rank, timeout, max_message };
    write(stream, Kind::Welcome, &welcome.encode())?;
    write(stream, Kind::Weights, &weights.body)?;
    Ok(Some((*version, *conditions)))
}

/// Takes walks, and gives parameters where there are newer ones.
fn serve(
    shared: &Shared,
    stream: &mut TcpStream,
    ticket: u64,
    mut version: u64,
    conditions: Form,
) -> Result<(), Broken> {
    loop {
        let (kind, body) = read(stream, shared.config.max_message)?;
        match kind {
            Kind::Alive => continue,
            Kind::Done => return Ok(()),
            Kind::Walks => {}
            other => return Err(Broken::Garbage(format!("{other:?} from an actor"))),
        }
        if let Some(reason) = shared.rejected(ticket) {
            // It was counted when it was found.
            tell(stream, &reason)?;
            return Ok(());
        }
        let submission = Submission::decode(&body)?;
        if submission.version > version {
            let claimed = submission.version;
            return Err(Broken::Garbage(format!(
                "walks by the parameters of step {claimed}, it was sent those of {version}"
            )));
        }
        let theirs = Form::of(submission.conditions.as_ref());
        if theirs != conditions {
            return Err(Broken::Garbage(format!("walks under other conditions ({theirs}, not {conditions})")));
        }
        let item = Item { ticket, submission };
        if shared.push(item, || write(stream, Kind::Alive, &[]))?.is_none() {
            return Ok(());
        }
        let Some(weights) = shared.weights(|| Ok(()))? else { return Ok(()) };
        let newer = weights.version > version;
        write(stream, Kind::Receipt, &[u8::from(newer)])?;
        if newer {
            write(stream, Kind::Weights, &weights.body)?;
            version = weights.version;
        }
    }
}
