//! A line of progress on the terminal.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::number;
use crate::terminal;

/// How often the line may change.
const INTERVAL: Duration = Duration::from_millis(100);
const TEMPLATE: &str = "{prefix} {bar:24} {pos}/{len}  {per_sec}{msg}  {eta} left";

/// The progress of a training run on stderr: iterations per second, loss, log Z and time left; nothing where stderr isn't a
/// terminal.
///
/// ```
/// use gfn::report::Progress;
/// let mut progress = Progress::new(1000, "ring");
/// for step in 1..=1000 {
///     // ... one iteration ...
///     progress.update(step, 0.5, Some(6.4));
/// }
/// progress.finish();
/// ```
#[derive(Debug)]
pub struct Progress {
    /// None where nobody looks.
    bar: Option<ProgressBar>,
    drawn: Option<Instant>,
    last: (u64, f64, Option<f64>),
}

impl Progress {
    /// Progress towards `total_steps`, on stderr if that is a terminal.
    #[must_use]
    pub fn new(total_steps: u64, label: &str) -> Self {
        let target = std::io::stderr().is_terminal().then(ProgressDrawTarget::stderr);
        Self::on(target, total_steps, label)
    }

    fn on(target: Option<ProgressDrawTarget>, total_steps: u64, label: &str) -> Self {
        let bar = target.map(|target| {
            let style = ProgressStyle::with_template(TEMPLATE);
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::with_draw_target(Some(total_steps), target)
                .with_style(style.with_key("per_sec", per_second))
                .with_prefix(label.to_owned())
        });
        if let Some(bar) = &bar {
            let bar = bar.downgrade();
            terminal::print_through(move |line| {
                let drawing = bar.upgrade().filter(|bar| !bar.is_finished());
                drawing.is_some_and(|bar| {
                    bar.suspend(|| eprintln!("{line}"));
                    true
                })
            });
        }
        Self { bar, drawn: None, last: (0, f64::NAN, None) }
    }

    /// Says that `step` steps are done. Cheap enough for every iteration: the line changes ten times a second at most.
    pub fn update(&mut self, step: u64, loss: f64, log_z: Option<f64>) {
        if self.bar.is_none() {
            return;
        }
        self.last = (step, loss, log_z);
        let now = Instant::now();
        if self.drawn.is_none_or(|drawn| now - drawn >= INTERVAL) {
            self.drawn = Some(now);
            self.draw();
        }
    }

    /// Shows the last state and leaves the line on the terminal.
    pub fn finish(self) {
        self.draw();
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }

    fn draw(&self) {
        let (step, loss, log_z) = self.last;
        if let Some(bar) = &self.bar {
            bar.set_message(message(loss, log_z));
            bar.set_position(step);
        }
    }
}

fn per_second(state: &indicatif::ProgressState, out: &mut dyn Write) {
    // The worst that can happen is a line without this number.
    let _ = write!(out, "{} it/s", number(state.per_sec()));
}

fn message(loss: f64, log_z: Option<f64>) -> String {
    let log_z = log_z.map_or_else(String::new, |log_z| format!("  log Z {}", number(log_z)));
    format!("  loss {}{log_z}", number(loss))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_updates_draw_once_and_the_end_shows_the_last() {
        let mut progress = Progress::on(Some(ProgressDrawTarget::hidden()), 5000, "ring");
        let started = Instant::now();
        for step in 1..=5000 {
            progress.update(step, 0.5, Some(f64::from(step as u32)));
        }
        let draws = 1 + started.elapsed().as_millis() / INTERVAL.as_millis();
        let bar = progress.bar.clone().unwrap();
        assert!(draws > 1 || bar.position() == 1, "at {}", bar.position());
        progress.finish();
        assert_eq!(bar.position(), 5000);
        assert_eq!(bar.message(), "  loss 0.5000  log Z 5000");
    }

    #[test]
    fn nothing_happens_without_a_terminal() {
        let mut progress = Progress::on(None, 10, "quiet");
        progress.update(3, 1.0, None);
        assert!(progress.drawn.is_none());
        progress.finish();
        assert_eq!(message(0.25, None), "  loss 0.2500");
    }
}
