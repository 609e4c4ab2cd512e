//! Reading of gzipped pickles, a format in which other programs publish weights and tables.

use std::io::Read;

use flate2::read::GzDecoder;
use serde_pickle::{DeOptions, Value};

/// The first bytes of a gzipped file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The largest number of bytes that an unpacked pickle may have. Further bytes aren't read.
const MOST: u64 = 64 << 20;

pub(super) fn is_gzipped(bytes: &[u8]) -> bool {
    bytes.starts_with(&GZIP)
}

/// Reads a gzipped pickle. The error describes the problem. No class that the pickle names is instantiated:
/// an object is represented by the arguments of its constructor.
pub(super) fn unpickled(bytes: &[u8]) -> Result<Value, String> {
    let mut pickle = Vec::new();
    GzDecoder::new(bytes).take(MOST).read_to_end(&mut pickle).map_err(|error| error.to_string())?;
    serde_pickle::value_from_slice(&pickle, DeOptions::new().replace_unresolved_globals())
        .map_err(|error| error.to_string())
}
