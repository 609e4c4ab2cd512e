//! Bits to booleans, eight at a time.

/// The eight bits of each byte.
static BYTES: [[bool; 8]; 256] = {
    let mut out = [[false; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            out[byte][bit] = byte >> bit & 1 == 1;
            bit += 1;
        }
        byte += 1;
    }
    out
};

/// Writes bits one after another as booleans: a state's mask is one run of bits, whatever the length of its rows.
pub(super) struct BoolWriter<'a> {
    out: std::slice::ChunksExactMut<'a, bool>,
    /// Bits that wait for a whole byte: fewer than eight between calls.
    waiting: u64,
    n_waiting: usize,
}

impl<'a> BoolWriter<'a> {
    pub(super) fn new(out: &'a mut [bool]) -> Self {
        Self { out: out.chunks_exact_mut(8), waiting: 0, n_waiting: 0 }
    }

    /// The lowest `n` bits of a word; the others must be 0.
    pub(super) fn push(&mut self, bits: u64, n: usize) {
        if n > 56 {
            self.push_few(bits & 0xffff_ffff, 32);
            self.push_few(bits >> 32, n - 32);
        } else {
            self.push_few(bits, n);
        }
    }

    fn push_few(&mut self, bits: u64, n: usize) {
        debug_assert!(n + self.n_waiting < 64 && bits >> n == 0, "{n} bits of {bits:b}");
        self.waiting |= bits << self.n_waiting;
        self.n_waiting += n;
        while self.n_waiting >= 8 {
            if let Some(out) = self.out.next() {
                out.copy_from_slice(&BYTES[(self.waiting & 0xff) as usize]);
            }
            self.waiting >>= 8;
            self.n_waiting -= 8;
        }
    }

    /// Writes the waiting bits.
    pub(super) fn finish(self) {
        let rest = self.out.into_remainder();
        debug_assert_eq!(rest.len(), self.n_waiting, "as many bits as places");
        rest.copy_from_slice(&BYTES[(self.waiting & 0xff) as usize][..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_out_in_order_whatever_the_pieces() {
        for sizes in [vec![1], vec![10; 10], vec![64, 36, 64, 36], vec![57, 7, 3, 64, 64, 8]] {
            let total: usize = sizes.iter().sum();
            let mut random = 0x9e37_79b9_7f4a_7c15u64;
            let (mut expected, mut out) = (Vec::new(), vec![false; total]);
            let mut writer = BoolWriter::new(&mut out);
            for n in sizes {
                random = random.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
                let bits = if n == 64 { random } else { random >> (64 - n) };
                writer.push(bits, n);
                expected.extend((0..n).map(|bit| bits >> bit & 1 == 1));
            }
            writer.finish();
            assert_eq!(out, expected);
        }
    }
}
