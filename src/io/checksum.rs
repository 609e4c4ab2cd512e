//! The checksum of a folder of tensors, and the parsing of its manifest.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::layout::{FolderKind, file_error};
use crate::Result;

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Returns the 64-bit FNV-1a hash of a manifest (written compactly, with an empty checksum field) followed by
/// the bytes of the tensors, in 16 hexadecimal digits. The hash detects damage, but no manipulation.
pub(crate) fn digest(unsealed: &impl Serialize, data: &[u8], path: &Path) -> Result<String> {
    let head = serde_json::to_vec(unsealed).map_err(|e| {
        file_error(
            path,
            format!("the manifest can't be written as JSON ({e})"),
            "use only strings as keys and numbers of at most 64 bits in `state`",
        )
    })?;
    Ok(format!("{:016x}", fnv1a(fnv1a(FNV_START, &head), data)))
}

/// Parses a manifest. The format number is checked first, because everything else may differ in another
/// format.
pub(crate) fn parse<M: DeserializeOwned>(
    text: &[u8],
    path: &Path,
    format: u32,
    layout: &FolderKind,
) -> Result<M> {
    let noun = layout.noun;
    let damaged = |e: serde_json::Error| {
        file_error(path, format!("this isn't the manifest of a {noun} ({e})"), layout.damaged)
    };
    let value: serde_json::Value = serde_json::from_slice(text).map_err(damaged)?;
    let found = value.get("format").and_then(serde_json::Value::as_u64);
    if let Some(found) = found.filter(|&found| found != u64::from(format)) {
        return Err(file_error(
            path,
            format!("the {noun} has format {found}, but this version of gfn reads format {format}"),
            "load it with the version of gfn that wrote it",
        ));
    }
    serde_json::from_value(value).map_err(damaged)
}

/// Returns the 64-bit FNV-1a hash (Fowler, Noll and Vo) of bytes. `start` is the hash of the bytes before
/// `data`, or `FNV_START` if there are none.
fn fnv1a(start: u64, data: &[u8]) -> u64 {
    data.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// A 64-bit hash of the bytes that are added to it, for fingerprints.
pub(crate) struct Hash(u64);

impl Hash {
    pub(crate) fn new() -> Self {
        Self(FNV_START)
    }
    pub(crate) fn add(&mut self, data: &[u8]) {
        self.0 = fnv1a(self.0, data);
    }
    pub(crate) fn number(&mut self, value: usize) {
        self.add(&(value as u64).to_le_bytes());
    }
    pub(crate) fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_published_test_vectors() {
        assert_eq!(fnv1a(FNV_START, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(FNV_START, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(fnv1a(FNV_START, b"foo"), b"bar"), 0x8594_4171_f739_67e8);
    }
}
