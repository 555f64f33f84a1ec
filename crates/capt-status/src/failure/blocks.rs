//! Looks at 64 bytes of a text at once: a bit for each byte, so that words are found without a branch for
//! each byte. Nothing here knows what a word means.

/// How many bytes a mask stands for.
pub(super) const BLOCK: usize = 64;

/// A bit for each of the first [`BLOCK`] bytes of `text` for which `is` holds, the first byte lowest.
/// Bytes behind the end give 0.
pub(super) fn mask(text: &[u8], is: impl Fn(u8) -> bool) -> u64 {
    if let Some(block) = text.first_chunk() {
        return full(block, is);
    }
    let mut block = [0; BLOCK];
    block.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
    full(&block, is) & ((1 << text.len()) - 1)
}

/// Compilers compare many bytes at once in the first loop; the product moves the lowest bits of eight
/// bytes beside each other.
fn full(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
    let mut flags = [0; BLOCK];
    for (flag, byte) in flags.iter_mut().zip(block) {
        *flag = u8::from(is(*byte));
    }
    let eights = flags.as_chunks().0.iter().rev();
    eights.fold(0, |mask, eight| mask << 8 | u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56)
}

/// Calls `found` with the start and the end of each longest row of bytes for which `is` holds.
pub(super) fn rows(text: &[u8], is: impl Fn(u8) -> bool, mut found: impl FnMut(usize, usize)) {
    // Whether the block before ends inside a row, and where that begins.
    let (mut inside, mut start) = (0, 0);
    for (number, block) in text.chunks(BLOCK).enumerate() {
        let bits = mask(block, &is);
        let mut edges = bits ^ (bits << 1 | inside);
        inside = bits >> (BLOCK - 1);
        while edges != 0 {
            let edge = edges.trailing_zeros();
            let at = number * BLOCK + edge as usize;
            if bits >> edge & 1 == 1 {
                start = at;
            } else {
                found(start, at);
            }
            edges &= edges - 1;
        }
    }
    if inside == 1 {
        found(start, text.len());
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_mask_has_a_bit_for_each_byte(text in proptest::collection::vec(any::<u8>(), 0..130)) {
            let bits = mask(&text, |byte| byte % 3 == 0);
            for at in 0..BLOCK {
                let expected = text.get(at).is_some_and(|byte| byte % 3 == 0);
                prop_assert_eq!(bits >> at & 1 == 1, expected, "{}", at);
            }
        }

        #[test]
        fn rows_are_what_splitting_gives(text in "[a ]{0,200}|a{60,70}( a{0,130}){0,3}") {
            let mut found = Vec::new();
            rows(text.as_bytes(), |byte| byte == b'a', |start, end| found.push((start, end)));
            let base = text.as_ptr() as usize;
            let expected: Vec<_> = text
                .split(' ')
                .filter(|row| !row.is_empty())
                .map(|row| (row.as_ptr() as usize - base, row.as_ptr() as usize - base + row.len()))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
