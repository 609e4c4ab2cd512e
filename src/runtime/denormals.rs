//! Treats denormal numbers as zero while libtorch computes gradients.
//!
//! The gradient of a softmax contains the probabilities of almost impossible actions, which may be denormal
//! numbers. Some processors take a hundred times as long for denormal numbers. The processor's mode that
//! treats denormal numbers as zero belongs to a thread, not to a library. Rust assumes that the mode isn't
//! set, and a reward in f64 may need denormals. Therefore the mode is set only during libtorch's backward
//! passes.

/// Calls `work` with denormal numbers treated as zero, and restores the mode of the thread afterwards. `work`
/// should be a single libtorch operation.
#[cfg(target_arch = "x86_64")]
pub(crate) fn flushing_denormals<T>(work: impl FnOnce() -> T) -> T {
    /// The thread's previous mode for denormal numbers, which is restored when this value is dropped, even if
    /// `work` panics.
    struct Restore(u32);
    impl Drop for Restore {
        fn drop(&mut self) {
            set_mode(self.0);
        }
    }
    let before = mode();
    let _restore = Restore(before);
    // In the SSE control register, bit 15 replaces denormal results by zero (FTZ), and bit 6 replaces
    // denormal inputs by zero (DAZ).
    set_mode(before | 1 << 15 | 1 << 6);
    work()
}

/// Calls `work` without changing the mode, because processors other than x86_64 handle denormal numbers at
/// full speed.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn flushing_denormals<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// Returns the SSE control register of this thread, which contains the mode for denormal numbers.
#[cfg(target_arch = "x86_64")]
fn mode() -> u32 {
    let mut mode = 0_u32;
    #[allow(unsafe_code, reason = "tch does not bind libtorch's set_flush_denormal")]
    // SAFETY: the instruction writes the four bytes pointed at and nothing else.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack));
    }
    mode
}

#[cfg(target_arch = "x86_64")]
fn set_mode(mode: u32) {
    #[allow(unsafe_code, reason = "tch does not bind libtorch's set_flush_denormal")]
    // SAFETY: the instruction reads the four bytes pointed at. Callers change only the two bits for
    // denormals, not the exception masks or the rounding mode, and run no Rust arithmetic until the bits are
    // restored.
    unsafe {
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack, readonly));
    }
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind, Tensor};

    use super::*;

    fn halved() -> f64 {
        std::hint::black_box(f64::MIN_POSITIVE) * std::hint::black_box(0.5)
    }

    #[test]
    fn libtorch_flushes_and_the_thread_is_as_it_was() {
        let least = Tensor::full([64], f64::from(f32::MIN_POSITIVE), (Kind::Float, Device::Cpu));
        let left = |tensor: Tensor| tensor.count_nonzero(0).int64_value(&[]);
        assert_eq!(left(&least * 0.5), 64);
        let flushed = flushing_denormals(|| &least * 0.5);
        if cfg!(target_arch = "x86_64") {
            assert_eq!(left(flushed), 0);
        }
        assert!(halved() > 0.0);
        let panicked = std::panic::catch_unwind(|| flushing_denormals(|| panic!("as a backward pass may")));
        assert!(panicked.is_err() && halved() > 0.0);
    }
}
