//! A record on disk of everything that training with [`gfn`] samples: SQLite, append-only, whole after a crash.
//!
//! | item | is |
//! |---|---|
//! | [`TrainingRecord`] | an [`Observer`](gfn::train::Observer) that records what each step draws |
//! | [`RecordWriter`] | the file, to append to: one transaction per step |
//! | [`RecordReader`], [`Filter`] | what is in it: by run, by steps, each object once, the best |
//! | [`Sample`] | an object: its text, its key, its log-reward, and scores by name |
//!
//! What is recorded is up to the environment's owner: molecules as SMILES, graphs as graph6, strings as they are.
//!
//! # The file
//! An SQLite 3 file (`application_id` 0x67666e72, `user_version` 1) in WAL mode, so that it can be read while it is written; beside it
//! lie `-wal` and `-shm` until its writer closes it, and after a crash until it is opened next. The last writer to close it leaves a plain
//! file, which needs no write permission to be read. It has two tables:
//!
//! ```text
//! runs    (id, token, started)
//! samples (run, step, place, text, key, log_reward, one REAL column per score)      primary key (run, step, place)
//! ```
//!
//! A step is one transaction: after SIGKILL all steps that were committed are there, and no half of one. After a loss of power the last
//! steps may be missing, but none of those before the last checkpoint: [`RecordWriter::sync`] comes before it.
//! Numbers are read back bit for bit, but for -0, which is read as 0, and NaN, which is NULL.
//!
//! # Runs
//! A run that goes on from a checkpoint goes on with its rows: it knows them by the token that the checkpoint keeps, and rows of later
//! steps, which it makes again, are dropped. Nothing else is ever removed: a run that starts anew is another run of the same file, and
//! so is one that resumes with a file that doesn't have it.

mod observer;
mod reader;
mod schema;
mod writer;

pub use observer::{Described, TrainingRecord};
pub use reader::{Filter, RecordReader, RecordedSample, Run};
pub use writer::{RecordWriter, Sample};
