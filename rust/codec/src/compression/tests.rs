use proptest::prelude::*;

use super::*;
use crate::Code;

const REAL: [Compression; 4] = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
const LIMIT: usize = 1 << 26;

fn packed(compression: Compression, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    compress(compression, data, &mut out);
    out
}

fn code(result: Result<Vec<u8>>) -> Code {
    result.unwrap_err().code
}

/// Text that compresses a little, of any size.
fn text(size: usize) -> Vec<u8> {
    (0..size).map(|i| b"a line of text, "[i % 16] ^ u8::from(i % 97 == 0)).collect()
}

#[test]
fn every_size_around_the_blocks_comes_back() {
    for compression in Compression::ALL {
        for size in [0, 1, 31, 32 * 1024, 32 * 1024 + 1, 65_536, 65_537, 300_000] {
            let plain = text(size);
            assert_eq!(decompress(compression, &packed(compression, &plain), LIMIT), Ok(plain));
        }
    }
}

/// All pieces one after another, and the largest of them.
fn pieces(compression: Compression, data: &[u8], limit: usize, step: usize) -> Result<(Vec<u8>, usize)> {
    let mut unpack = Unpack::new(compression, data, limit, step)?;
    let (mut out, mut largest) = (Vec::new(), 0);
    while !unpack.advance()?.is_empty() {
        out.extend_from_slice(unpack.piece());
        largest = largest.max(unpack.piece().len());
    }
    assert!(unpack.is_done());
    assert_eq!(unpack.left(), limit - out.len());
    Ok((out, largest))
}

#[test]
fn pieces_give_the_whole_and_are_bounded() {
    let plain = text(3_000_000);
    for compression in Compression::ALL {
        let data = packed(compression, &plain);
        for step in [1 << 10, 100_000, PIECE] {
            let (out, largest) = pieces(compression, &data, LIMIT, step).unwrap();
            assert!(out == plain, "{compression:?}");
            assert!(largest < step + (4 << 20), "{compression:?} {largest}");
            assert!(pieces(compression, &data, out.len(), step).is_ok());
            let less = pieces(compression, &data, out.len() - 1, step);
            assert_eq!(less.unwrap_err().code, Code::DecompressionLimit, "{compression:?} {step}");
        }
    }
}

#[test]
fn linked_lz4_blocks_reach_into_the_piece_before() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let plain: Vec<u8> = (0..500_000_u32).map(|i| (i.wrapping_mul(i >> 9) >> 3) as u8).collect();
    let plain = [&plain[..60_000], &plain[..60_000], &plain[..], &plain[400_000..]].concat();
    let info =
        FrameInfo::new().block_mode(BlockMode::Linked).block_size(BlockSize::Max64KB).content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    std::io::Write::write_all(&mut encoder, &plain).unwrap();
    let one = encoder.finish().unwrap();
    let two = [&one[..], &one].concat(); // the second may not reach into the first
    assert_eq!(pieces(Compression::Lz4, &two, LIMIT, 1).unwrap().0, [&plain[..], &plain].concat());
}

#[test]
fn a_zstd_frame_that_asks_for_a_window_beyond_128_mib_is_corrupt() {
    // No size announced; the window; then the last block, as it is, of one byte.
    let frame = |window: u8| [&0xFD2F_B528_u32.to_le_bytes()[..], &[0, window, 9, 0, 0, b'x']].concat();
    assert_eq!(decompress(Compression::Zstd, &frame(17 << 3), 1), Ok(b"x".to_vec()));
    for window in [17 << 3 | 1, 18 << 3, 31 << 3 | 7] {
        assert_eq!(code(decompress(Compression::Zstd, &frame(window), LIMIT)), Code::CorruptCompression);
    }
    // 128 MiB are held by one at a time, and given back.
    for _ in 0..2 {
        assert_eq!(pieces(Compression::Zstd, &frame(17 << 3), 1, 1).map(|(out, _)| out), Ok(b"x".to_vec()));
    }
}

#[test]
fn no_room_is_made_for_what_is_only_announced() {
    // A raw block of snappy that says 4 GiB - 1, a frame of zstd that says 1 GiB and holds nothing.
    let snappy = [0xff, 0xff, 0xff, 0xff, 0x0f, 0];
    assert_eq!(code(decompress(Compression::Snappy, &snappy, usize::MAX)), Code::CorruptCompression);
    assert_eq!(code(decompress(Compression::Snappy, &snappy, 1 << 30)), Code::DecompressionLimit);
    let zstd = [&0xFD2F_B528_u32.to_le_bytes()[..], &[0x80, 0, 0, 0, 0, 0x40, 1, 0, 0]].concat();
    assert_eq!(code(decompress(Compression::Zstd, &zstd, usize::MAX)), Code::CorruptCompression);
}

#[test]
fn the_bound_is_exact() {
    let plain = text(10_000);
    for compression in REAL {
        let compressed = packed(compression, &plain);
        assert!(decompress(compression, &compressed, plain.len()).is_ok());
        assert_eq!(code(decompress(compression, &compressed, plain.len() - 1)), Code::DecompressionLimit);
        assert_eq!(code(decompress(compression, &compressed, 0)), Code::DecompressionLimit);
    }
}

#[test]
fn bombs_do_not_go_off() {
    let zeros = vec![0; 32 << 20];
    for compression in [Compression::Gzip, Compression::Lz4, Compression::Zstd] {
        let bomb = packed(compression, &zeros);
        assert_eq!(code(decompress(compression, &bomb, zeros.len() - 1)), Code::DecompressionLimit);
        assert!(decompress(compression, &bomb, zeros.len()).is_ok_and(|out| out == zeros));
    }
}

#[test]
fn a_zstd_frame_of_unknown_size_is_read_and_bounded() {
    let plain = text(3 << 20);
    let stream = zstd_stream(&plain);
    assert_eq!(decompress(Compression::Zstd, &stream, plain.len()).map(|out| out == plain), Ok(true));
    assert_eq!(code(decompress(Compression::Zstd, &stream, plain.len() - 1)), Code::DecompressionLimit);
    let short = zstd_stream(b"short");
    assert_eq!(decompress(Compression::Zstd, &short, 5), Ok(b"short".to_vec()));
    assert_eq!(code(decompress(Compression::Zstd, &short, 4)), Code::DecompressionLimit);
}

#[test]
fn a_zstd_frame_that_gives_more_than_it_says_is_corrupt() {
    let mut liar = packed(Compression::Zstd, &text(200));
    assert_eq!((liar[4], liar[5]), (0x20, 200), "one byte of content size");
    for said in [0, 5, 199, 201, 255] {
        liar[5] = said;
        assert_eq!(code(decompress(Compression::Zstd, &liar, LIMIT)), Code::CorruptCompression, "{said}");
        let behind = [packed(Compression::Zstd, b"a good one"), liar.clone()].concat();
        assert_eq!(code(decompress(Compression::Zstd, &behind, LIMIT)), Code::CorruptCompression, "{said}");
        assert_eq!(code(decompress(Compression::Zstd, &behind, 9)), Code::DecompressionLimit);
    }
    assert_eq!(code(decompress(Compression::Zstd, &liar, 254)), Code::DecompressionLimit, "as it says");
    let stream = zstd_stream(&text(100_000));
    assert_eq!(
        code(decompress(Compression::Zstd, &stream[..stream.len() - 1], LIMIT)),
        Code::CorruptCompression
    );
}

#[test]
fn the_limit_is_for_all_zstd_frames_together() {
    let one = text(1000);
    for second in [packed(Compression::Zstd, &one), zstd_stream(&one)] {
        let two = [zstd_stream(&one), second].concat();
        assert_eq!(decompress(Compression::Zstd, &two, 2000), Ok([&one[..], &one].concat()));
        assert_eq!(code(decompress(Compression::Zstd, &two, 1999)), Code::DecompressionLimit);
    }
}

#[test]
fn a_zstd_block_larger_than_its_frame_allows_is_corrupt() {
    // No size announced, a window of 1 KiB; then the last block, a repeated byte.
    let frame = |size: u32| {
        let header = (size << 3 | 0b011).to_le_bytes();
        [&0xFD2F_B528_u32.to_le_bytes()[..], &[0, 0], &header[..3], b"x"].concat()
    };
    assert_eq!(decompress(Compression::Zstd, &frame(1024), 1024), Ok(vec![b'x'; 1024]));
    assert_eq!(code(decompress(Compression::Zstd, &frame(1024), 1023)), Code::DecompressionLimit);
    for size in [1025, 1 << 20] {
        assert_eq!(code(decompress(Compression::Zstd, &frame(size), LIMIT)), Code::CorruptCompression);
    }
}

#[test]
fn zstd_frames_to_skip_are_skipped() {
    let skipped = [&0x184D_2A50_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"any"].concat();
    let data = [&skipped[..], &packed(Compression::Zstd, b"text"), &skipped].concat();
    assert_eq!(decompress(Compression::Zstd, &data, 4), Ok(b"text".to_vec()));
}

/// As a streaming encoder writes it: without the content's size.
fn zstd_stream(plain: &[u8]) -> Vec<u8> {
    ::zstd::stream::encode_all(plain, 3).unwrap()
}

#[test]
fn parts_written_one_after_another_are_one() {
    for compression in [Compression::Gzip, Compression::Lz4, Compression::Zstd] {
        let mut two = packed(compression, b"first ");
        two.extend(packed(compression, b"second"));
        assert_eq!(decompress(compression, &two, LIMIT), Ok(b"first second".to_vec()));
    }
}

#[test]
fn empty_input_and_bytes_behind_are_corrupt() {
    for compression in REAL {
        assert_eq!(code(decompress(compression, b"", LIMIT)), Code::CorruptCompression);
        let mut longer = packed(compression, b"some text");
        longer.extend(b"more");
        assert_eq!(
            code(decompress(compression, &longer, LIMIT)),
            Code::CorruptCompression,
            "{compression:?}"
        );
    }
}

#[test]
fn no_prefix_is_whole() {
    let plain = text(400);
    for compression in REAL {
        let whole = packed(compression, &plain);
        for end in 0..whole.len() {
            let result = decompress(compression, &whole[..end], LIMIT);
            // The header alone of framed snappy says that there are no blocks.
            assert!(result.is_err() || (compression == Compression::Snappy && result == Ok(vec![])), "{end}");
        }
    }
}

#[test]
fn raw_snappy_is_read_too() {
    let raw = snap::raw::Encoder::new().compress_vec(&text(100_000)).unwrap();
    assert_eq!(decompress(Compression::Snappy, &raw, LIMIT), Ok(text(100_000)));
    assert_eq!(code(decompress(Compression::Snappy, &raw, 99_999)), Code::DecompressionLimit);
}

#[test]
fn snappy_block_lengths_are_checked() {
    let good = packed(Compression::Snappy, b"some text");
    for length in [0_u32, 1 << 31, u32::MAX, i32::MAX as u32, good.len() as u32] {
        let mut bad = good.clone();
        bad[16..20].copy_from_slice(&length.to_be_bytes());
        assert_eq!(code(decompress(Compression::Snappy, &bad, LIMIT)), Code::CorruptCompression, "{length}");
    }
    // A block that announces 4 GiB of text.
    let mut huge = good[..16].to_vec();
    huge.extend([0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert_eq!(code(decompress(Compression::Snappy, &huge, LIMIT)), Code::DecompressionLimit);
}

#[test]
fn the_old_lz4_header_checksum_is_refused() {
    let mut old = packed(Compression::Lz4, b"some text");
    old[6] = (twox_hash::XxHash32::oneshot(0, &old[..6]) >> 8) as u8;
    assert_eq!(code(decompress(Compression::Lz4, &old, LIMIT)), Code::CorruptCompression);
}

#[test]
fn every_kind_of_lz4_frame_is_read_and_verified() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let plain = text(1 << 20);
    for mode in [BlockMode::Independent, BlockMode::Linked] {
        let info = FrameInfo::new()
            .block_mode(mode)
            .block_size(BlockSize::Max256KB)
            .block_checksums(true)
            .content_checksum(true)
            .content_size(Some(plain.len() as u64));
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        std::io::Write::write_all(&mut encoder, &plain).unwrap();
        let frame = encoder.finish().unwrap();
        assert_eq!(decompress(Compression::Lz4, &frame, LIMIT).map(|out| out == plain), Ok(true));
        for at in [4, 5, 6, 14, 40, frame.len() - 1] {
            let mut bad = frame.clone();
            bad[at] ^= 0x10;
            assert_eq!(code(decompress(Compression::Lz4, &bad, LIMIT)), Code::CorruptCompression, "{at}");
        }
    }
}

#[test]
fn numbers_beyond_four_are_unknown() {
    assert!((0..5).all(|bits| Compression::from_bits(bits).unwrap().bits() == bits));
    assert!(
        (5..=u8::MAX).all(|bits| Compression::from_bits(bits).unwrap_err().code == Code::UnknownCompression)
    );
}

proptest! {
    #[test]
    fn damaged_bytes_are_the_same_in_pieces(
        which in 0..4_usize, plain: Vec<u8>, times in 1..40_usize, at: prop::sample::Index, flip: u8, step in 0..300_usize,
    ) {
        let mut bytes = packed(REAL[which], &plain.repeat(times));
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let whole = decompress(REAL[which], &bytes, LIMIT);
        let parts = pieces(REAL[which], &bytes, LIMIT, step.max(1)).map(|(out, _)| out);
        prop_assert_eq!(whole.map_err(|error| error.code), parts.map_err(|error| error.code));
    }

    #[test]
    fn damaged_bytes_are_a_value_or_an_error(
        which in 0..4_usize, plain: Vec<u8>, at: prop::sample::Index, flip in 1..=u8::MAX, limit in 0..10_000_usize,
    ) {
        let mut bytes = packed(REAL[which], &plain);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(out) = decompress(REAL[which], &bytes, limit) {
            prop_assert!(out.len() <= limit);
        }
    }

    #[test]
    fn random_bytes_are_a_value_or_an_error(which in 0..4_usize, bytes: Vec<u8>) {
        if let Ok(out) = decompress(REAL[which], &bytes, LIMIT) {
            prop_assert!(out.len() <= LIMIT);
        }
    }
}
