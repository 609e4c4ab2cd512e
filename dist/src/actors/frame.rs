//! Frames: what goes over a connection, each with its kind and its length, both looked at before a byte more is read.

use std::io::{self, ErrorKind, Read, Write};

use gfn::Error;

const MAGIC: [u8; 4] = *b"gfna";
/// The version of frames and of all that is in them. Who speaks another one is refused.
const PROTOCOL: u16 = 2;
const HEAD: usize = 16;
/// Shorter frames go as one piece.
const SMALL: usize = 1 << 16;

/// What a frame says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub(super) enum Kind {
    /// An actor's first: which model and which environment it has.
    Hello = 1,
    /// The learner's answer: the actor's number.
    Welcome,
    /// Parameters.
    Weights,
    /// Walks of an actor.
    Walks,
    /// They are in the learner's memory.
    Receipt,
    /// Nothing, but the other is there.
    Alive,
    /// Why the connection ends.
    Refused,
    /// Training is over; or the actor has had enough.
    Done,
}

impl Kind {
    const ALL: [Self; 8] =
        [Self::Hello, Self::Welcome, Self::Weights, Self::Walks, Self::Receipt, Self::Alive, Self::Refused, Self::Done];

    fn of(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == number)
    }
}

/// Why a connection is of no use any more.
#[derive(Debug)]
pub(super) enum Broken {
    /// The other has ended, or was cut off.
    Gone(String),
    /// It says nothing, or takes nothing, for longer than the timeout.
    Late,
    /// A message that makes no sense here.
    Garbage(String),
}

impl Broken {
    pub(super) fn garbage(what: impl Into<String>) -> Self {
        Self::Garbage(what.into())
    }

    fn of(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Late,
            ErrorKind::UnexpectedEof => Self::Gone("it has closed the connection".to_owned()),
            _ => Self::Gone(error.to_string()),
        }
    }

    /// The same for whoever talks to `who`.
    pub(super) fn of_peer(self, who: &str) -> Error {
        match self {
            Self::Gone(problem) => {
                Error::peer(who, problem, "look for the error that it ended with, start it again, and connect anew")
            }
            Self::Late => Error::peer(
                who,
                "it neither says nor takes anything for longer than the timeout",
                "look whether it was stopped and whether the network is up, and connect anew",
            ),
            Self::Garbage(problem) => Error::peer(
                who,
                problem,
                "let actors and learner have the same model, environment and version of gfn-dist",
            ),
        }
    }
}

/// The next frame, whose contents may have `most` bytes.
pub(super) fn read(stream: &mut impl Read, most: usize) -> Result<(Kind, Vec<u8>), Broken> {
    let mut head = [0; HEAD];
    stream.read_exact(&mut head).map_err(Broken::of)?;
    let mut fields = Fields(&head);
    if fields.array::<4>()? != MAGIC {
        return Err(Broken::garbage("what it sends are no messages of actors or learners"));
    }
    let (protocol, kind, length) = (fields.u16()?, fields.u16()?, fields.u64()?);
    if protocol != PROTOCOL {
        return Err(Broken::Garbage(format!("it speaks version {protocol} of the protocol, this one is {PROTOCOL}")));
    }
    let kind = Kind::of(kind).ok_or_else(|| Broken::Garbage(format!("a message of unknown kind {kind}")))?;
    if length > most as u64 {
        return Err(Broken::Garbage(format!("{kind:?} of {length} bytes, where at most {most} are taken")));
    }
    // Memory grows with what comes, not with what was announced.
    let mut body = Vec::new();
    stream.take(length).read_to_end(&mut body).map_err(Broken::of)?;
    if body.len() as u64 == length {
        Ok((kind, body))
    } else {
        Err(Broken::Gone("it has closed the connection within a message".to_owned()))
    }
}

pub(super) fn write(stream: &mut impl Write, kind: Kind, body: &[u8]) -> Result<(), Broken> {
    let mut out = Vec::with_capacity(HEAD + body.len().min(SMALL));
    out.extend(MAGIC);
    out.extend(PROTOCOL.to_le_bytes());
    out.extend((kind as u16).to_le_bytes());
    out.extend((body.len() as u64).to_le_bytes());
    if body.len() <= SMALL {
        out.extend(body);
        return stream.write_all(&out).map_err(Broken::of);
    }
    stream.write_all(&out).and_then(|()| stream.write_all(body)).map_err(Broken::of)
}

/// Numbers of a message, little end first, taken off its front.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) =
            self.0.split_at_checked(n).ok_or_else(|| Broken::garbage("a message that is shorter than it says"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Broken> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Result<u16, Broken> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Broken> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Broken> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn f64(&mut self) -> Result<f64, Broken> {
        self.array().map(f64::from_le_bytes)
    }

    pub(super) fn end(self) -> Result<(), Broken> {
        if self.0.is_empty() { Ok(()) } else { Err(Broken::garbage("a message that is longer than it says")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in() {
        for body in [vec![], vec![7; 3], vec![1; SMALL + 1]] {
            let mut wire = Vec::new();
            write(&mut wire, Kind::Walks, &body).unwrap();
            assert_eq!(read(&mut wire.as_slice(), body.len()).unwrap(), (Kind::Walks, body));
        }
    }

    #[test]
    fn what_is_no_frame_is_refused_before_its_contents_are_read() {
        let mut wire = Vec::new();
        write(&mut wire, Kind::Hello, &[1, 2, 3]).unwrap();
        let says = |wire: &[u8], most, words: &str| match read(&mut &*wire, most) {
            Err(Broken::Garbage(text) | Broken::Gone(text)) => assert!(text.contains(words), "{text}"),
            other => panic!("{other:?}"),
        };
        says(&wire, 2, "at most 2 are taken");
        says(&wire[..18], 3, "within a message");
        says(&wire[..9], 3, "closed the connection");
        says(b"GET / HTTP/1.1\r\n\r\n", 99, "no messages of actors");
        for (place, byte, words) in [(4, 9, "version 9"), (6, 99, "kind 99"), (15, 255, "at most 3")] {
            let mut other = wire.clone();
            other[place] = byte;
            says(&other, 3, words);
        }
    }
}
