//! A progress line on the terminal, and messages printed above it.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The shortest time between two redraws of the line.
const INTERVAL: Duration = Duration::from_millis(100);
/// The template of the line: a bar and a message. The message is cut at the terminal's edge, so it ends with
/// its least important parts.
const TEMPLATE: &str = "{bar:12} {wide_msg}";

/// A line on stderr that shows the progress of a training run: steps, steps per second, loss, log Z and time
/// left. The line is never wider than the terminal. Nothing is shown if stderr isn't a terminal.
///
/// ```
/// use gfn::run::Progress;
/// let mut progress = Progress::new(1000, "ring");
/// for step in 1..=1000 {
///     // ... one iteration ...
///     progress.update(step, 0.5, Some(6.4));
/// }
/// progress.finish();
/// ```
#[derive(Debug)]
pub struct Progress {
    /// The progress bar that draws the line; `None` if stderr isn't a terminal.
    bar: Option<ProgressBar>,
    /// The time of the latest redraw; `None` before the line is drawn for the first time.
    last_redraw: Option<Instant>,
    /// The time before which the line isn't shown; `None` if it is shown from the start.
    hidden_until: Option<Instant>,
    label: String,
    total: u64,
    /// The number of steps made before this run, which don't count in the run's speed.
    before: u64,
    started: Instant,
    step: u64,
    loss: Option<f64>,
    log_z: Option<f64>,
}

impl Progress {
    /// Returns a progress line for a run up to `total_steps` steps. `label` is shown at the end of the line.
    #[must_use]
    pub fn new(total_steps: u64, label: &str) -> Self {
        let target = std::io::stderr().is_terminal().then(ProgressDrawTarget::stderr);
        Self::on(target, total_steps, label)
    }

    fn on(target: Option<ProgressDrawTarget>, total_steps: u64, label: &str) -> Self {
        let bar = target.map(|target| {
            let style = ProgressStyle::with_template(TEMPLATE);
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::with_draw_target(Some(total_steps), target).with_style(style)
        });
        if let Some(bar) = &bar {
            let bar = bar.downgrade();
            print_through(move |line| {
                let drawing = bar.upgrade().filter(|bar| !bar.is_finished());
                drawing.is_some_and(|bar| {
                    bar.suspend(|| write(line));
                    true
                })
            });
        }
        Self {
            bar,
            last_redraw: None,
            hidden_until: None,
            label: label.to_owned(),
            total: total_steps,
            before: 0,
            started: Instant::now(),
            step: 0,
            loss: None,
            log_z: None,
        }
    }

    /// Hides the line until the time `wait` has passed. If the run ends earlier, the line never appears.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.hidden_until = self.started.checked_add(wait);
        self
    }

    /// Sets the number of steps made before this run, for a resumed run. These steps don't count in the run's
    /// speed.
    #[must_use]
    pub fn resumed_at(mut self, step: u64) -> Self {
        (self.before, self.step) = (step, step);
        self
    }

    /// Adds steps made before this run to those of [`resumed_at`](Self::resumed_at).
    pub(super) fn add_resumed(&mut self, steps: u64) {
        (self.before, self.step) = (self.before + steps, self.step + steps);
    }

    /// Reports that `steps` more steps are done, as [`update`](Self::update) does.
    pub(super) fn advance(&mut self, steps: u64, loss: f64, log_z: Option<f64>) {
        self.update(self.step + steps, loss, log_z);
    }

    /// Reports that `step` steps are done, with the latest loss and log Z. The call is cheap enough for every
    /// step, because the line is redrawn at most ten times a second.
    pub fn update(&mut self, step: u64, loss: f64, log_z: Option<f64>) {
        if self.bar.is_none() {
            return;
        }
        (self.step, self.loss, self.log_z) = (step, Some(loss), log_z);
        let now = Instant::now();
        if self.hidden_until.is_some_and(|start| now < start) {
            return;
        }
        if self.last_redraw.is_none_or(|last| now - last >= INTERVAL) {
            self.last_redraw = Some(now);
            self.draw();
        }
    }

    /// Draws the line a last time and leaves it on the terminal. Does nothing if the line hasn't appeared
    /// yet.
    pub fn finish(self) {
        if self.hidden_until.is_some() && self.last_redraw.is_none() {
            return;
        }
        self.draw();
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
    }

    fn draw(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message(self.message(self.started.elapsed()));
            bar.set_position(self.step);
        }
    }

    /// Returns the text behind the bar, for the time `elapsed` since the run started.
    fn message(&self, elapsed: Duration) -> String {
        let seconds = elapsed.as_secs_f64();
        let made = self.step.saturating_sub(self.before);
        let mut out = format!("{}/{}", self.step, self.total);
        if made > 0 && seconds > 0.0 {
            let rate = made as f64 / seconds;
            let left = Duration::try_from_secs_f64(self.total.saturating_sub(self.step) as f64 / rate);
            out += &format!("  {} it/s", short(rate));
            out += &left.map_or_else(|_| String::new(), |left| format!("  {:#} left", HumanDuration(left)));
        }
        if let Some(loss) = self.loss {
            out += &format!("  loss {}", short(loss));
        }
        if let Some(log_z) = self.log_z {
            out += &format!("  log Z {}", short(log_z));
        }
        out + "  " + &self.label
    }
}

/// Formats a number in a few characters.
fn short(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-3 { format!("{value:.2e}") } else { format!("{value:.3}") }
}

/// A function that prints a line above a progress line. The function returns `false` if the progress line has
/// ended.
type Printer = Box<dyn Fn(&str) -> bool + Send>;

static PRINTER: Mutex<Option<Printer>> = Mutex::new(None);

/// Sets the function by which all later messages are printed, until it returns `false`.
fn print_through(printer: impl Fn(&str) -> bool + Send + 'static) {
    *PRINTER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(printer));
}

/// Prints a line on stderr, above the progress line if a progress line is shown. The line names the seed if
/// several seeds are trained.
pub(super) fn say(line: &str) {
    let line = &(super::seeds::prefix() + line);
    let printer = PRINTER.lock().unwrap_or_else(PoisonError::into_inner);
    if !printer.as_ref().is_some_and(|print| print(line)) {
        write(line);
    }
}

/// Writes a line to stderr. Errors are ignored, because a closed terminal must not end a run.
fn write(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use indicatif::TermLike;

    use super::*;

    /// A fake terminal of 80 columns that records the text written to it.
    #[derive(Clone, Debug, Default)]
    struct Narrow(Arc<Mutex<String>>);

    impl TermLike for Narrow {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            *self.0.lock().unwrap() += text;
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.write_str("\n")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_line_is_no_longer_than_the_terminal_is_wide() {
        let terminal = Narrow::default();
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        let mut progress = Progress::on(Some(target), 1_000_000, "molecule_multi_objective");
        progress.update(999_999, -1.2345e-12, Some(-12345.6));
        progress.finish();
        let written = terminal.0.lock().unwrap().clone();
        let lines: Vec<&str> = written.lines().filter(|line| !line.trim().is_empty()).collect();
        assert!(lines.iter().any(|line| line.contains("999999/1000000")), "{written:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{written:?}");
    }

    #[test]
    fn a_resumed_run_counts_its_own_steps() {
        let mut progress = Progress::on(None, 2_000, "ring").resumed_at(1_000);
        progress.step = 1_200;
        let message = progress.message(Duration::from_secs(2));
        assert_eq!(message, "1200/2000  100.000 it/s  8s left  ring");
        assert_eq!(
            Progress::on(None, 10, "ring").resumed_at(10).message(Duration::from_secs(2)),
            "10/10  ring"
        );
    }

    #[test]
    fn steps_of_several_runs_add_up() {
        let mut progress = Progress::on(Some(ProgressDrawTarget::hidden()), 40, "grid, 2 seeds");
        progress.add_resumed(3);
        progress.advance(1, 0.5, None);
        progress.add_resumed(4);
        progress.advance(2, 0.5, None);
        let message = progress.message(Duration::from_secs(1));
        assert_eq!(message, "10/40  3.000 it/s  10s left  loss 0.500  grid, 2 seeds");
    }

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
        assert!(bar.message().ends_with("  loss 0.500  log Z 5000.000  ring"), "{}", bar.message());
    }

    #[test]
    fn a_run_that_ends_before_the_line_appears_shows_nothing() {
        for (wait, shown) in [(Duration::from_secs(3600), false), (Duration::ZERO, true)] {
            let terminal = Narrow::default();
            let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
            let mut progress = Progress::on(Some(target), 10, "short").after(wait);
            progress.update(10, 1.0, None);
            progress.finish();
            assert_eq!(terminal.0.lock().unwrap().contains("10/10"), shown, "{wait:?}");
        }
    }

    #[test]
    fn nothing_happens_without_a_terminal() {
        let mut progress = Progress::on(None, 10, "quiet");
        progress.update(3, 1.0, None);
        assert!(progress.last_redraw.is_none());
        assert!(!progress.message(Duration::ZERO).contains("loss"));
        progress.finish();
    }

    #[test]
    fn lines_go_through_the_printer_until_it_returns_false() {
        let drawing = Arc::new(AtomicBool::new(true));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let draws = Arc::clone(&drawing);
        let printed = Arc::clone(&lines);
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
