//! An observer that writes event files for TensorBoard.

use std::fs::{self, File};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::run::{Observer, Record};
use crate::train::TrainEnv;
use crate::train::Trainer;
use crate::{Error, Result};

/// An observer that writes the results of each step to an event file, which `tensorboard --logdir FOLDER`
/// shows while the run continues. Add this observer after all observers that measure metrics, so that it also
/// writes their metrics.
///
/// The tags are the keys of [`MetricsFile`](super::MetricsFile), and `seconds/sample`, `seconds/score`,
/// `seconds/backward` and `seconds/update`. TensorBoard stores values in single precision. Each step is
/// passed to the operating system at once, so that the file of a killed process has all its steps.
///
/// Every run, resumed or not, starts a new file in the folder, and makes the folder if it doesn't exist. A
/// resumed run repeats the steps after its checkpoint. The first records of its file therefore make
/// TensorBoard discard these steps of the earlier files. Use a separate folder for each run, and the same
/// folder when a run is resumed.
///
/// ```
/// use gfn::run::{Fit, TensorBoard};
/// use gfn::train::{Trainer, TrainerConfig};
/// use gfn::{
///     Rng,
///     examples::{Chain, Positions},
///     objective::LogPartitionVariance,
///     policy::UniformPolicy,
/// };
/// let reward =
///     |s: &Positions, _: Option<&tch::Tensor>| -> gfn::Result<Vec<f64>> { Ok(vec![0.0; s.0.len()]) };
/// let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
/// let mut trainer =
///     Trainer::new(Chain::new(4), reward, UniformPolicy, LogPartitionVariance, config, Rng::seeded(0))?;
/// let folder = std::env::temp_dir().join(format!("gfn-events-{}", std::process::id()));
/// let mut events = TensorBoard::new(&folder);
/// Fit::new(10).observe(&mut events).run(&mut trainer)?;
/// assert_eq!(std::fs::read_dir(&folder).map_or(0, |files| files.count()), 1);
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok::<(), gfn::Error>(())
/// ```
///
/// Source of the format: `event.proto`, `summary.proto` and `record_writer.py` of TensorBoard 2.21.
#[derive(Debug)]
pub struct TensorBoard {
    folder: PathBuf,
    /// The path of this run's event file; empty before the run starts.
    path: PathBuf,
    file: Option<File>,
}

impl TensorBoard {
    /// Returns an observer that writes event files in `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), path: PathBuf::new(), file: None }
    }

    /// Starts a new event file, at the time `now`, for a run whose first step is `first`.
    fn open(&mut self, now: Duration, first: usize) -> Result<()> {
        fs::create_dir_all(&self.folder).map_err(|source| Error::io(&self.folder, source))?;
        // TensorBoard recognizes event files by `tfevents` in their names, and reads them in the order of
        // their names.
        self.path =
            self.folder.join(format!("events.out.tfevents.{:010}.{:09}", now.as_secs(), now.subsec_nanos()));
        let file = File::create_new(&self.path).map_err(|source| Error::io(&self.path, source))?;
        self.file = Some(file);
        self.write(&head(now.as_secs_f64(), first))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes));
        written.map_err(|source| Error::io(&self.path, source))
    }
}

impl<E: TrainEnv> Observer<E> for TensorBoard {
    fn name(&self) -> &str {
        "tensorboard"
    }

    fn start(&mut self, trainer: &Trainer<E>, _state: Option<&Value>) -> Result<()> {
        self.open(now(), trainer.steps_done() + 1)
    }

    fn after_step(&mut self, _trainer: &Trainer<E>, record: &mut Record) -> Result<ControlFlow<()>> {
        self.write(&scalars(now().as_secs_f64(), record.step, &record.figures()))?;
        Ok(ControlFlow::Continue(()))
    }

    /// Forces the file's data to disk before a checkpoint is saved. Otherwise a crash of the machine could
    /// lose the events of steps that the checkpoint contains.
    fn save(&mut self) -> Result<Value> {
        let synced = self.file.as_ref().map_or(Ok(()), File::sync_data);
        synced.map_err(|source| Error::io(&self.path, source))?;
        Ok(Value::Null)
    }
}

/// Returns the time since 1970, which TensorBoard shows as wall time. Training doesn't depend on this time.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the first two records of a file: the version of the format, and the start of a session at `step`.
fn head(wall_time: f64, step: usize) -> Vec<u8> {
    // Field 3 of `Event` is the version of the file. Field 7 is a `SessionLog`; its field 1 is the status,
    // and the status 1 means start.
    [event(wall_time, 0, 3, b"brain.Event:2"), event(wall_time, step, 7, &[1 << 3, 1])].concat()
}

/// Returns the record with the named numbers of a step. Field 5 of `Event` is a `Summary`, which has a field
/// 1 for each number.
fn scalars(wall_time: f64, step: usize, figures: &[(&str, f64)]) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, figure) in figures {
        // Field 1 of `Value` is the number's name. Field 2 is the number as a 4-byte float.
        let mut value = Vec::new();
        put(&mut value, 1, tag.as_bytes());
        value.push(2 << 3 | 5);
        value.extend((*figure as f32).to_le_bytes());
        put(&mut summary, 1, &value);
    }
    event(wall_time, step, 5, &summary)
}

/// Returns a record with an `Event`. Field 1 of the event is the wall time in 8 bytes. Field 2 is the step,
/// left out for step 0. The field with the number `field` holds `content`.
fn event(wall_time: f64, step: usize, field: u8, content: &[u8]) -> Vec<u8> {
    let mut event = vec![1 << 3 | 1];
    event.extend(wall_time.to_le_bytes());
    if step > 0 {
        event.push(2 << 3);
        put_varint(&mut event, step);
    }
    put(&mut event, field, content);
    // A record consists of its length, the checksum of the length, the bytes of the event, and their
    // checksum.
    let length = (event.len() as u64).to_le_bytes();
    let mut record = length.to_vec();
    record.extend(masked_crc(&length).to_le_bytes());
    record.extend(&event);
    record.extend(masked_crc(&event).to_le_bytes());
    record
}

/// Appends a length-delimited field of the protocol-buffers format.
fn put(out: &mut Vec<u8>, field: u8, content: &[u8]) {
    out.push(field << 3 | 2);
    put_varint(out, content.len());
    out.extend(content);
}

/// Appends a number as a varint: one byte per seven bits, lowest bits first. All bytes but the last have the
/// high bit set.
fn put_varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Returns the masked CRC of bytes, as record files store it: the CRC is rotated, and a constant is added.
/// The format masks it because the CRC of data that contains an unmasked CRC would be a weak checksum.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Returns the CRC-32C (Castagnoli) of bytes. The CRC is computed bit by bit, because a step has only a few
/// hundred bytes.
fn crc32c(bytes: &[u8]) -> u32 {
    let shift = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), shift))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use crate::examples::{Chain, Positions};
    use crate::io::replace::tests::folder;
    use crate::objective::LogPartitionVariance;
    use crate::policy::UniformPolicy;
    use crate::run::Fit;
    use crate::train::{StepStats, TrainerConfig};

    /// The bytes, in hexadecimal, that `RecordWriter` of TensorBoard 2.21 writes for the events of `head(1.5,
    /// 300)`.
    const HEAD: &str = "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c\
        100000000000000095fbfe1809000000000000f83f10ac023a020801713b788a";
    const SCALARS: &str =
        "a9000000000000003467981309000000000000024010ac022a9a010a0b0a046c6f7373150000003f0a8a010a8201";

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_bytes_are_those_of_tensorboards_own_writer() {
        assert_eq!((crc32c(b"123456789"), masked_crc(b"123456789")), (0xe306_9283, 0xc78a_b0e5));
        assert_eq!(hex(&head(1.5, 300)), HEAD);
        let tag = "t".repeat(130);
        let expected = format!("{SCALARS}{}15000000004cdbe41a", hex(tag.as_bytes()));
        assert_eq!(hex(&scalars(2.25, 300, &[("loss", 0.5), (&tag, 0.0)])), expected);
    }

    /// Returns the bytes of all events of a file, without their wall times, which differ between runs.
    fn events(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut rest = bytes;
        let mut found = Vec::new();
        while !rest.is_empty() {
            let (length, behind) = rest.split_at(8);
            let n = u64::from_le_bytes(length.try_into().unwrap()) as usize;
            assert_eq!(behind[..4], masked_crc(length).to_le_bytes());
            assert_eq!(behind[4 + n..][..4], masked_crc(&behind[4..][..n]).to_le_bytes());
            found.push(behind[13..4 + n].to_vec());
            rest = &behind[8 + n..];
        }
        found
    }

    #[test]
    fn a_resumed_run_starts_a_new_file_and_continues_the_steps() {
        let folder = folder("events").join("new");
        let reward = |s: &Positions, _: Option<&tch::Tensor>| Ok(vec![0.0; s.0.len()]);
        let config = TrainerConfig { batch: 4, ..TrainerConfig::default() };
        let mut trainer =
            Trainer::new(Chain::new(4), reward, UniformPolicy, LogPartitionVariance, config, Rng::seeded(0))
                .unwrap();
        for steps in [3, 5] {
            Fit::new(steps).observe(&mut TensorBoard::new(&folder)).run(&mut trainer).unwrap();
        }
        let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let found: Vec<_> = paths.iter().map(|path| events(&fs::read(path).unwrap())).collect();
        let begins = |event: &[u8], step: u8, field: u8| event.starts_with(&[2 << 3, step, field << 3 | 2]);
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [2 + 3, 2 + 2]);
        assert!(
            begins(&found[0][1], 1, 7) && begins(&found[1][1], 4, 7),
            "sessions start at steps 1 and 4: {found:?}"
        );
        let steps = found.iter().flat_map(|file| &file[2..]).zip(1..);
        for (event, step) in steps {
            assert!(begins(event, step, 5), "step {step}: {event:?}");
        }
        // A path to something that isn't a folder is an error.
        let mut nowhere = TensorBoard::new(&paths[0]);
        let refused = Fit::new(6).observe(&mut nowhere).run(&mut trainer);
        assert!(matches!(refused, Err(Error::Io { path, .. }) if path == paths[0]));
        fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }

    #[test]
    fn every_figure_of_a_line_of_metrics_has_a_tag() {
        let mut record = Record::new(7, 9, StepStats { loss: f64::NAN, ..StepStats::default() }, false);
        record.metrics.insert("tv".to_owned(), 0.5);
        let figures = record.figures();
        let tags: Vec<&str> = figures.iter().map(|(tag, _)| tag.split('/').next().unwrap()).collect();
        let line = serde_json::to_value(&record).unwrap();
        for key in line.as_object().unwrap().keys() {
            assert!(key == "step" || tags.contains(&key.as_str()), "{key}");
        }
        assert!(figures.contains(&("tv", 0.5)) && figures.contains(&("reward_calls", 9.0)));
        assert!(figures.iter().any(|(tag, value)| *tag == "loss" && value.is_nan()));
    }
}
