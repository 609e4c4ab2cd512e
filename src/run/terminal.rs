//! Lines on stderr that don't break up a progress line.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Prints a line above a progress line. Returns `false` if there is no progress line any more.
type Printer = Box<dyn Fn(&str) -> bool + Send>;

static PRINTER: Mutex<Option<Printer>> = Mutex::new(None);

/// Prints lines through `printer` from now on, until it returns false.
pub(crate) fn print_through(printer: impl Fn(&str) -> bool + Send + 'static) {
    *PRINTER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(printer));
}

/// Prints a line on stderr.
pub(crate) fn say(line: &str) {
    let printer = PRINTER.lock().unwrap_or_else(PoisonError::into_inner);
    if !printer.as_ref().is_some_and(|print| print(line)) {
        write(line);
    }
}

/// Writes a line to stderr. Errors are ignored, because a closed terminal must not end a run.
pub(crate) fn write(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn lines_go_through_the_printer_until_it_returns_false() {
        let drawing = Arc::new(AtomicBool::new(true));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (draws, printed) = (Arc::clone(&drawing), Arc::clone(&lines));
        print_through(move |line| {
            let draws = draws.load(Ordering::Relaxed);
            if draws {
                printed.lock().unwrap().push(line.to_owned());
            }
            draws
        });
        say("beside the bar");
        drawing.store(false, Ordering::Relaxed);
        say("this line of a test goes to stderr, since nothing draws any more");
        assert_eq!(*lines.lock().unwrap(), ["beside the bar"]);
    }
}
