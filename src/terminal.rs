//! Lines on stderr that don't tear a line of progress apart.

use std::sync::{Mutex, PoisonError};

/// Prints a line beside what it draws, or says that it no longer draws.
type Printer = Box<dyn Fn(&str) -> bool + Send>;

static PRINTER: Mutex<Option<Printer>> = Mutex::new(None);

/// From now on lines go through this, as long as it draws.
pub(crate) fn print_through(printer: impl Fn(&str) -> bool + Send + 'static) {
    *PRINTER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(printer));
}

/// Prints a line on stderr.
pub(crate) fn say(line: &str) {
    let printer = PRINTER.lock().unwrap_or_else(PoisonError::into_inner);
    if !printer.as_ref().is_some_and(|print| print(line)) {
        eprintln!("{line}");
    }
}
