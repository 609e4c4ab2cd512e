//! The header of each message that members of a group exchange.

use gfn::{Error, Result};
use tch::Kind;

/// The largest number of elements in a tensor that members may exchange.
pub(crate) const MAX_ELEMENTS: usize = 1 << 34;
/// The dtypes of the tensors that members may exchange.
pub(crate) const KINDS: [Kind; 10] = [
    Kind::Float,
    Kind::Double,
    Kind::Half,
    Kind::BFloat16,
    Kind::Int64,
    Kind::Int,
    Kind::Int16,
    Kind::Int8,
    Kind::Uint8,
    Kind::Bool,
];
/// The number of bytes in a header. A header has four numbers: the index of the operation, the number of
/// operations that the member has called before, the dtype of the tensor, and its number of elements.
pub(crate) const HEADER: usize = 32;

/// The names of the operations. A header holds an index into this list.
const OPERATIONS: [&str; 2] = ["join", "sum"];
/// The index of the operation that gathers tensors from all members.
pub(crate) const JOIN: u64 = 0;
/// The index of the operation that sums tensors over all members.
pub(crate) const SUM: u64 = 1;

/// Reads the dtype and the number of elements from the header of another member's message. Returns `None` if
/// these aren't valid.
///
/// # Errors
/// [`Error::Contract`] if the header doesn't begin with `own_id`: the index of this member's operation, and
/// the number of operations before it. The members then call different operations.
pub(crate) fn read_header(
    own_id: [u64; 2],
    rank: usize,
    other: usize,
    row: &[u8],
) -> Result<Option<(Kind, usize)>> {
    let number = |at: usize| {
        let bytes: [u8; 8] = std::array::from_fn(|k| row.get(8 * at + k).copied().unwrap_or_default());
        u64::from_le_bytes(bytes)
    };
    let other_id = [number(0), number(1)];
    if other_id != own_id {
        let name = |code: u64| OPERATIONS.get(code as usize).copied().unwrap_or("an unknown operation");
        let say = |[code, number]: [u64; 2]| format!("{} (operation {number})", name(code));
        let detail =
            format!("member {other} calls {}, but member {rank} calls {}", say(other_id), say(own_id));
        return Err(Error::contract("members of a group call the same operations in the same order", detail));
    }
    let kind = KINDS.into_iter().find(|kind| *kind as u64 == number(2));
    let length = usize::try_from(number(3)).ok().filter(|length| *length <= MAX_ELEMENTS);
    Ok(kind.zip(length))
}
