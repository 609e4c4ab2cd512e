//! What each replica keeps for itself, brought together for one checkpoint, and taken apart again.

use std::path::Path;

use tch::Tensor;

use super::LAYOUT;
use crate::collective::Collective;
use crate::io::{Named, deserialise, malformed, serialise};
use crate::{Error, Result};

/// Tensors by name: what one replica keeps.
pub(in crate::train) type Tensors = Vec<(String, Tensor)>;

/// How many replicas' tensors a section holds. Without it they are those of one trainer.
const REPLICAS: &str = "replicas";
/// Beside a replica's own tensors, as they are while it trains.
const OWN: &str = "own";

/// The tensors of all replicas as one section, at the first of them; nothing at the others. All must call it in the same step.
pub(super) fn gather(collective: &dyn Collective, mine: &[(String, Tensor)]) -> Result<Option<Tensors>> {
    let nowhere = Path::new("the replicas' buffers");
    let bytes = Tensor::from_slice(&serialise(mine, nowhere)?);
    let all = collective.all_gather(&bytes)?;
    if collective.rank() > 0 {
        return Ok(None);
    }
    let mut section = vec![(REPLICAS.to_owned(), Tensor::from_slice(&[all.len() as i64]))];
    for (rank, theirs) in all.iter().enumerate() {
        if theirs.kind() != tch::Kind::Uint8 {
            let detail = format!("replica {rank} does something else while replica 0 saves");
            return Err(Error::contract("all replicas save in the same step", detail));
        }
        let bytes: Vec<u8> = theirs.try_into()?;
        let tensors = deserialise(&bytes, nowhere, &LAYOUT)?;
        section.extend(tensors.into_iter().map(|(name, tensor)| (format!("{rank}/{name}"), tensor)));
    }
    Ok(Some(section))
}

/// What a replica must load.
pub(in crate::train) enum Saved {
    /// Its own tensors.
    Own(Tensors),
    /// Those of another number of replicas, which are to be dealt out anew.
    Others(Vec<Tensors>),
}

/// Marks a replica's tensors as its own, so that they aren't dealt when they are put back.
pub(in crate::train) fn own(mut tensors: Tensors) -> Tensors {
    tensors.push((OWN.to_owned(), Tensor::from_slice(&[1i64])));
    tensors
}

/// What of a section is for one of `size` replicas.
pub(in crate::train) fn apart(section: &[(String, Tensor)], (rank, size): (usize, usize)) -> Result<Saved> {
    let shallow = |tensors: &[(String, Tensor)]| -> Tensors {
        tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shallow_clone())).collect()
    };
    let named = Named(section);
    if named.get(REPLICAS).is_none() {
        let is_own = size == 1 || named.get(OWN).is_some();
        return Ok(if is_own { Saved::Own(shallow(section)) } else { Saved::Others(vec![shallow(section)]) });
    }
    let count = named.column(named.ints(REPLICAS)?, REPLICAS, 1)?[0];
    let of = |one: usize| -> Tensors {
        let mine = |name: &str| name.strip_prefix(&format!("{one}/")).map(str::to_owned);
        section.iter().filter_map(|(name, tensor)| Some((mine(name)?, tensor.shallow_clone()))).collect()
    };
    // Each has tensors of its own, so their number bounds that of replicas.
    let count = usize::try_from(count).ok().filter(|count| (1..=section.len()).contains(count));
    let count = count.ok_or_else(|| malformed(REPLICAS))?;
    match count == size {
        true => Ok(Saved::Own(of(rank))),
        false => Ok(Saved::Others((0..count).map(of).collect())),
    }
}
