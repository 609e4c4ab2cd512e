use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::{Error, Result};

/// The beginning of the message of a panic of tch, before the message of libtorch.
const TCH_PANIC: &str = "called `Result::unwrap()` on an `Err` value: Torch(\"";

/// Calls code of a user, and converts a panic of tch to [`Error::External`] with the first line of libtorch's
/// message. `code` names the code in the error. All other panics continue.
pub(crate) fn catch_tch<T>(code: &'static str, call: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        match panic.downcast_ref::<String>().and_then(|message| message.strip_prefix(TCH_PANIC)) {
            // The message is the debug form of a string, in which a line break is a backslash and an n.
            Some(message) => Err(Error::external(code, message.split("\\n").next().unwrap_or(message))),
            None => resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use tch::Tensor;

    use super::*;

    #[test]
    fn only_panics_of_tch_become_errors() {
        let sum = |n: usize| Ok(Tensor::from_slice(&[1.0, 2.0]) + Tensor::from_slice(&vec![1.0; n]));
        assert_eq!(catch_tch("the sum", || sum(2)).unwrap().size(), [2]);
        let message = catch_tch("the sum", || sum(3)).unwrap_err().to_string();
        assert!(message.starts_with("the sum") && message.contains("(2) must match"), "{message}");
        assert!(!message.contains("frame") && !message.contains("Exception raised"), "{message}");
        let other = catch_unwind(|| catch_tch("the sum", || -> Result<()> { panic!("an index") }));
        assert_eq!(other.unwrap_err().downcast_ref::<&str>(), Some(&"an index"));
    }
}
