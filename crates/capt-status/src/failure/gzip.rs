//! Gunzip that is bounded and keeps what it can: input that is cut off or damaged gives its first part.
//!
//! Checksums are not compared, on purpose: half an error message is worth more than none.

use alloc::vec::Vec;

use miniz_oxide::inflate::{
    TINFLStatus,
    core::{DecompressorOxide, decompress, inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF},
};

const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const TRAILER: usize = 8;

/// How far the decompression came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// To the end of the input.
    Complete,
    /// The input is damaged or cut off.
    Damaged,
    /// There is more than `max` bytes of output.
    Full,
}

/// Appends the content of all members in `input` to `output`, which grows to at most `max` bytes.
pub(super) fn gunzip(mut input: &[u8], output: &mut Vec<u8>, max: usize) -> End {
    if input.is_empty() {
        return End::Damaged;
    }
    while !input.is_empty() {
        let Some(data) = skip_header(input) else { return End::Damaged };
        let (status, consumed) = inflate(data, output, max);
        match status {
            TINFLStatus::Done => {}
            TINFLStatus::HasMoreOutput => return End::Full,
            // Whatever else the library says, now or in a later release, is not that it is done.
            _ => return End::Damaged,
        }
        let Some(rest) = data.get(consumed.saturating_add(TRAILER)..) else { return End::Damaged };
        input = rest;
    }
    End::Complete
}

/// What follows the header of a member (RFC 1952, 2.3).
fn skip_header(input: &[u8]) -> Option<&[u8]> {
    const HEADER_CHECKSUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    if !input.starts_with(&MAGIC) {
        return None;
    }
    let flags = *input.get(3)?;
    let mut rest = input.get(10..)?;
    if flags & EXTRA != 0 {
        let length = usize::from(u16::from_le_bytes([*rest.first()?, *rest.get(1)?]));
        rest = rest.get(2 + length..)?;
    }
    for flag in [NAME, COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & HEADER_CHECKSUM != 0 {
        rest = rest.get(2..)?;
    }
    Some(rest)
}

/// Inflates one member; returns how it ended and how much of `data` it took.
fn inflate(data: &[u8], output: &mut Vec<u8>, max: usize) -> (TINFLStatus, usize) {
    let start = output.len();
    let max = max.saturating_sub(start);
    let mut state = DecompressorOxide::new();
    let (mut consumed, mut written) = (0, 0);
    // Error text shrinks to a third or less, so one round is the rule.
    let mut capacity = data.len().saturating_mul(4).saturating_add(512).min(max);
    loop {
        output.resize(start + capacity, 0);
        let (status, read, wrote) = decompress(
            &mut state,
            data.get(consumed..).unwrap_or_default(),
            output.get_mut(start..).unwrap_or_default(),
            written,
            TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
        );
        consumed += read;
        written += wrote;
        if status == TINFLStatus::HasMoreOutput && capacity < max {
            capacity = capacity.saturating_mul(2).min(max);
            continue;
        }
        output.truncate(start + written);
        return (status, consumed);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::failure::testing::gzip;

    fn unzip(input: &[u8], max: usize) -> (End, Vec<u8>) {
        let mut output = Vec::new();
        let end = gunzip(input, &mut output, max);
        (end, output)
    }

    #[test]
    fn members_follow_each_other() {
        let input = [gzip(b"first "), gzip(b""), gzip(b"second")].concat();
        assert_eq!(unzip(&input, 1000), (End::Complete, b"first second".to_vec()));
    }

    #[test]
    fn every_optional_header_field_is_skipped() {
        let plain = gzip(b"text");
        let mut input = vec![0x1f, 0x8b, 8, 2 | 4 | 8 | 16, 0, 0, 0, 0, 0, 255, 3, 0, 1, 2, 3];
        input.extend_from_slice(b"name\0comment\0cc");
        input.extend_from_slice(&plain[10..]);
        assert_eq!(unzip(&input, 1000), (End::Complete, b"text".to_vec()));
        for (flag, field) in [(2, "cc"), (4, "\u{7}\0seven b"), (8, "name\0"), (16, "comment\0")] {
            let header = [&[0x1f, 0x8b, 8, flag, 0, 0, 0, 0, 0, 255], field.as_bytes()].concat();
            assert_eq!(unzip(&[&header, &plain[10..]].concat(), 1000), (End::Complete, b"text".to_vec()), "{flag}");
            assert_eq!(unzip(&header, 1000).0, End::Damaged, "{flag}");
        }
    }

    #[test]
    fn a_cut_or_damaged_member_gives_its_first_part() {
        let text: Vec<u8> = (0..2000u32).flat_map(|n| alloc::format!("line {n}\n").into_bytes()).collect();
        let whole = gzip(&text);
        let (end, output) = unzip(&whole[..whole.len() / 2], 100_000);
        assert_eq!(end, End::Damaged);
        assert!(output.len() > 1000 && text.starts_with(&output), "{}", output.len());
        assert_eq!(unzip(&[whole.as_slice(), b"garbage"].concat(), 100_000), (End::Damaged, text));
        assert_eq!(unzip(b"", 10).0, End::Damaged);
        assert_eq!(unzip(b"H4sI", 10).0, End::Damaged);
    }

    #[test]
    fn a_bomb_stops_at_the_bound() {
        let bomb = gzip(&vec![b'a'; 8 << 20]);
        assert!(bomb.len() < 10_000);
        let (end, output) = unzip(&bomb, 65_536);
        assert_eq!((end, output.len()), (End::Full, 65_536));
    }

    proptest! {
        #[test]
        fn what_was_zipped_comes_back(text in proptest::collection::vec(any::<u8>(), 0..5000)) {
            prop_assert_eq!(unzip(&gzip(&text), 10_000), (End::Complete, text));
        }

        #[test]
        fn no_input_panics_or_breaks_the_bound(mut input in proptest::collection::vec(any::<u8>(), 0..300), max in 0usize..500) {
            prop_assert!(unzip(&input, max).1.len() <= max);
            input.splice(0..input.len().min(4), [0x1f, 0x8b, 8, 0]);
            prop_assert!(unzip(&input, max).1.len() <= max);
        }
    }
}
